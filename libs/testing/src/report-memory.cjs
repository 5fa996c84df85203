// Loaded into the services (`reportMemory`): a signal makes them write to their log how many bytes they hold without garbage.
const collection = { type: 'major', flavor: 'last-resort' };

process.on('SIGUSR2', () => {
  globalThis.gc(collection);
  // Some of what it found, such as buffers of the work just done, is released only in a later turn.
  setTimeout(report, 100);
});

function report() {
  globalThis.gc(collection);
  const { heapUsed, external } = process.memoryUsage();
  process.stdout.write(`${JSON.stringify({ pid: process.pid, heldBytes: heapUsed + external })}\n`);
}
