import { freePort } from '../src/free-port.ts';

/** Chooses ports that nothing listens on yet, says which, and lives until its parent disconnects. */
process.send?.(await Promise.all(Array.from({ length: 100 }, () => freePort())));
process.once('disconnect', () => process.exit());
