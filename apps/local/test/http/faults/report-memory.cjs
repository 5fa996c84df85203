// Loaded into the services, with --expose-gc: a signal makes them write to their log how many bytes they hold without garbage.
process.on('SIGUSR2', () => {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  console.log(JSON.stringify({ heldBytes: heapUsed + external }));
});
