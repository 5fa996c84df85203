import * as calendar from '@scheduling/contracts/calendar/v1';
import * as customer from '@scheduling/contracts/customer/v1';
import * as identity from '@scheduling/contracts/identity/v1';
import * as notification from '@scheduling/contracts/notification/v1';
import * as operations from '@scheduling/contracts/operations/v1';
import * as webhook from '@scheduling/contracts/webhook/v1';
import { type ClientOptions, createClient, type Definition, isUnimplemented } from '@scheduling/rpc';
import { expect } from 'vitest';

const definitions = [calendar, customer, identity, notification, operations, webhook]
  .flatMap((contract) => Object.entries(contract).filter(([name]) => name.endsWith('ServiceService')))
  .flatMap(([, definition]) => Object.values(definition as unknown as Definition));

/** Every RPC with an empty request, by its short name such as `AdminService/CreateKey`. */
const probes: Definition = Object.fromEntries(
  definitions.map((method) => [method.path.split('.').at(-1)!, { ...method, requestSerialize: () => Buffer.alloc(0) }]),
);

/** A client tries a method that does not exist several times. */
const laneCount = 8;

/** The short names of all methods of these gRPC services. */
export function methodsOf(...grpcServices: string[]): string[] {
  return Object.keys(probes)
    .filter((name) => grpcServices.includes(name.split('/')[0]!))
    .toSorted();
}

/**
 * Calls every RPC there is, and returns those that exist at this address but refuse this caller. Fails if one of them
 * serves it.
 */
export async function findRefusals(service: string, address: string, options: ClientOptions): Promise<string[]> {
  const names = Object.keys(probes);
  const lanes = Array.from({ length: laneCount }, (_, lane) =>
    probe(
      names.filter((_name, index) => index % laneCount === lane),
      service,
      address,
      options,
    ),
  );
  return (await Promise.all(lanes)).flat().toSorted();
}

async function probe(names: string[], service: string, address: string, options: ClientOptions): Promise<string[]> {
  using client = createClient(probes, service, address, options);
  const refusals: string[] = [];
  for (const name of names) {
    const error = await failureOf(client[name]!({}));
    if (isUnimplemented(error)) continue;
    expect(error, `${name} at ${service}`).toMatchObject({ code: 'caller.forbidden' });
    refusals.push(name);
  }
  return refusals;
}

/** Undefined if it succeeds. Of a stream, the first message is waited for. */
async function failureOf(call: Promise<unknown> | AsyncIterable<unknown>): Promise<unknown> {
  try {
    if (Symbol.asyncIterator in call) for await (const _ of call) break;
    else await call;
    return undefined;
  } catch (error) {
    return error;
  }
}
