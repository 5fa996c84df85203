import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readArrows } from './architecture.ts';
import { repositoryRoot } from './kustomizations.ts';
import { services } from './service-configuration.ts';

/** By the name of the gRPC service and of its method, as in `callers.ts` of each service. */
type Table = Record<string, Record<string, string[]>>;

interface Method {
  grpcService: string;
  method: string;
}

/** Not for other services, on a separate port: the admin command calls them. */
const operatorServices = new Set([
  'AdminService',
  'MailService',
  'DeadLetterService',
  'ConsumerService',
  'DatabaseService',
  'AuditService',
  'DeliveryStateService',
  'MailLinkService',
  'HoursOverviewService',
  'ProviderErasureService',
]);
/** On every port: each call in it is checked. */
const batchService = 'BatchService';
/** Functions of libs/service that call a method (provider-names.ts), for the services that use them. */
const functionsThatCall: Record<string, string> = {
  getProvider: 'requireId',
  listProviderReferences: 'findReferences',
};
const operatorMethods = new Set(['ErasureService.listErasures', 'ErasureService.replayErasures']);

const tables = await readTables();
const entries = Object.entries(tables).flatMap(([service, table]) =>
  Object.entries(table).flatMap(([grpcService, methods]) =>
    Object.entries(methods).map(([method, callers]) => ({
      service,
      name: `${grpcService}.${method}`,
      method,
      callers,
    })),
  ),
);

describe('the callers that a method accepts under mutual TLS', () => {
  it('are listed for every method that is not for operators, and for no other', () => {
    const forServices = readMethods().filter(
      ({ grpcService, method }) =>
        grpcService !== batchService &&
        !operatorServices.has(grpcService) &&
        !operatorMethods.has(`${grpcService}.${method}`),
    );
    expect(forServices.length).toBeGreaterThan(25);
    expect(entries.map(({ name }) => name).toSorted()).toEqual(
      forServices.map(({ grpcService, method }) => `${grpcService}.${method}`).toSorted(),
    );
  });

  it.each(Object.keys(tables))('are, for all methods of %s together, the callers in the architecture', (service) => {
    const listed = new Set(entries.filter((entry) => entry.service === service).flatMap(({ callers }) => callers));
    const drawn = readArrows()
      .calls.filter(([, to]) => to === service)
      .map(([from = '']) => from);
    expect([...listed].toSorted()).toEqual(drawn.toSorted());
  });

  it.each(entries)('are, for $name of $service, those whose code calls it', ({ service, method, callers }) => {
    const names = [method, functionsThatCall[method] ?? method];
    const calling = services.filter(
      (caller) => caller !== service && names.some((name) => sourceOf(caller).includes(`.${name}(`)),
    );
    expect(callers.toSorted()).toEqual(calling.toSorted());
  });
});

/** The tables of the services that others call. */
async function readTables(): Promise<Record<string, Table>> {
  const files = services
    .map((service) => [service, join(repositoryRoot, 'apps', service, 'src/callers.ts')] as const)
    .filter(([, file]) => existsSync(file));
  // Not imported statically: nothing depends on a service's code.
  const read = files.map(async ([service, file]) => {
    const { callers } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { callers: Table };
    return [service, callers] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}

/** The methods of all gRPC services, with the names that they have in TypeScript. */
function readMethods(): Method[] {
  return globSync('proto/**/*.proto', { cwd: repositoryRoot }).flatMap((file) => {
    const definitions = readFileSync(join(repositoryRoot, file), 'utf8').matchAll(/^service (\w+) \{([^]*?)^\}/gm);
    return [...definitions].flatMap(([, grpcService = '', body = '']) =>
      [...body.matchAll(/^ +rpc (\w)(\w*)\(/gm)].map(([, first = '', rest = '']) => ({
        grpcService,
        method: first.toLowerCase() + rest,
      })),
    );
  });
}

function sourceOf(service: string): string {
  const files = globSync('src/**/*.ts', { cwd: join(repositoryRoot, 'apps', service) }).filter(
    (file) => !file.endsWith('.test.ts'),
  );
  return files.map((file) => readFileSync(join(repositoryRoot, 'apps', service, file), 'utf8')).join('\n');
}
