export type ServerKind = 'embedded' | 'containers';

/**
 * The servers that `TEST_WITH` requests. Without a container engine, embedded servers are used instead, and `report`
 * receives the reason. A project's own global setup runs before the shared one, so it has to call this, too.
 */
export async function chooseServers(
  testWith: string | undefined,
  report?: (line: string) => void,
): Promise<ServerKind> {
  if (testWith === undefined || testWith === '') return 'embedded';
  if (testWith !== 'containers') throw new Error(`TEST_WITH may be "containers", not "${testWith}"`);
  const { findEngine } = await import('./containers/find-engine.ts');
  const engine = await findEngine();
  if (engine.answers) return 'containers';
  report?.(
    `TEST_WITH=containers: no container engine answers (${engine.reason}). The tests run on embedded servers, those that need containers are skipped.\n`,
  );
  return 'embedded';
}
