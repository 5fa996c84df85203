import { services } from '@scheduling/stack';
import {
  AppointmentServiceService,
  BookingServiceService,
  ParticipationServiceService,
  PersonServiceService,
  TimeslotServiceService,
} from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { BatchServiceService, MakeCallsRequest } from '@scheduling/contracts/rpc/v1';
import type { Random } from '@scheduling/testing/random';
import { connect } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import type { System } from '../system/start-system.ts';
import type { Fault } from './fault.ts';

const silenceMs = 15_000;
const badMs = 8_000;

export const halfOpen: Fault = {
  id: 'F18',
  name: 'connections closed or half-open',
  prepare: (random, { longestMs }) => {
    const caller = random.pick([...services, 'client'] as const);
    // Which of its links is decided when all of them are known.
    const number = random.integer(0, 1_000);
    const mode = random.pick(['silent', 'abandoned', 'cut'] as const);
    const ms = mode === 'silent' ? Math.min(longestMs, silenceMs) : 100;
    return {
      what: `${mode}${mode === 'silent' ? ` for ${ms / 1_000} s` : ''}, one of ${caller}'s`,
      parts: caller === 'client' ? [] : [caller],
      lastsMs: ms,
      run: async ({ links }) => {
        const own = [...links.values()].filter(({ name }) => name.startsWith(`${caller}-`));
        const link = own[number % own.length]!;
        if (mode === 'cut') return link.cut();
        if (mode === 'abandoned') return link.abandon();
        link.silence();
        await delay(ms);
        link.restore();
      },
    };
  },
};

export const badMailServer: Fault = {
  id: 'F15',
  name: 'mail server rejects, is slow, or closes the connection in DATA',
  prepare: (random, { longestMs }) => {
    const mood = random.pick(['refusing', 'slow', 'cutting'] as const);
    const ms = Math.min(longestMs, badMs);
    return {
      what: `${mood} for ${ms / 1_000} s`,
      parts: ['mail'],
      lastsMs: ms,
      run: async ({ mail }: System) => {
        mail.mood = mood;
        await delay(ms);
        mail.mood = 'good';
      },
    };
  },
};

const methods = [
  AppointmentServiceService,
  BatchServiceService,
  BookingServiceService,
  CustomerServiceService,
  IdentityServiceService,
  ParticipationServiceService,
  PersonServiceService,
  TimeslotServiceService,
].flatMap((service) => Object.values(service).map(({ path }) => path as string));
const malformedCount = 200;
const callMs = 1_000;

export const malformedCalls: Fault = {
  id: 'F19',
  name: 'malformed gRPC calls',
  prepare: (random) => {
    const service = random.pick(['identity', 'calendar', 'customer'] as const);
    const calls = Array.from({ length: malformedCount }, () => malformedCall(random));
    return {
      what: `${malformedCount} to ${service}`,
      parts: [],
      lastsMs: 1_000,
      run: async ({ groups }) => {
        const [replica] = groups[service].ready;
        if (replica === undefined) return false;
        for (const { path, body } of calls) await call(replica.ports.main, path, body);
        return true;
      },
    };
  },
};

/** Of its own, or as one of the unary calls of a stream. */
function malformedCall(random: Random): { path: string; body: Buffer } {
  const path = random.chance(0.9) ? random.pick(methods) : '/none';
  const bytes = Buffer.from(Array.from({ length: random.integer(0, 60) }, () => random.integer(0, 255)));
  if (random.chance(0.5)) return { path, body: malformedFrame(random, bytes) };
  const calls = [{ path, request: bytes, metadata: {}, deadlineMs: Number.MAX_VALUE }];
  return { path: BatchServiceService.makeCalls.path, body: frame(MakeCallsRequest.encode({ calls }).finish()) };
}

/** Behind a header that names the right length, or a wrong one. */
function malformedFrame(random: Random, bytes: Buffer): Buffer {
  const isCompressed = random.chance(0.1);
  return frame(bytes, random.chance(0.7) ? bytes.length : random.integer(0, 2 ** 31 - 1), isCompressed);
}

function frame(bytes: Uint8Array, length = bytes.length, isCompressed = false): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(isCompressed ? 1 : 0);
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, bytes]);
}

/** Ends when the server has answered in any way, or after a second. */
function call(port: number, path: string, body: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const session = connect(`http://127.0.0.1:${port}`);
    const end = (): void => {
      session.destroy();
      resolve();
    };
    session.on('error', end);
    const request = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    request.on('error', end).on('close', end).setTimeout(callMs, end);
    request.resume().end(body);
  });
}
