export type ServerKind = 'embedded' | 'containers';

/**
 * What `TEST_WITH` asks for. Without an engine that could run containers it is embedded servers all the same, and `report` hears why. A project's
 * own global setup runs before the one of all projects, so it has to ask, too.
 */
export async function chooseServers(testWith: string | undefined, report?: (line: string) => void): Promise<ServerKind> {
  if (testWith === undefined || testWith === '') return 'embedded';
  if (testWith !== 'containers') throw new Error(`TEST_WITH may be "containers", not "${testWith}"`);
  const { findEngine } = await import('./containers/find-engine.ts');
  const engine = await findEngine();
  if (engine.answers) return 'containers';
  report?.(`TEST_WITH=containers: no container engine answers (${engine.reason}). The tests run on embedded servers, those that need containers are skipped.\n`);
  return 'embedded';
}
