// Loaded into the services, with --expose-gc: a signal makes them write to their log how many bytes they hold without garbage.
process.on('SIGUSR2', () => {
  globalThis.gc();
  // Some of what it found, such as buffers of the work just done, is released only in a later turn.
  setTimeout(report, 100);
});

function report() {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  console.log(JSON.stringify({ heldBytes: heapUsed + external }));
}
