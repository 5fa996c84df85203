// Runs before everything else (`node --require`), also on a Node that cannot parse the rest: hence the JavaScript of 2009.
'use strict';

var oldestNode = 20;

function findFault(platform, version) {
  if (platform === 'win32') {
    return 'Windows is supported through WSL2 only: install it (https://learn.microsoft.com/windows/wsl/install) and run this command in it.';
  }
  if (Number(version.split('.')[0]) < oldestNode) {
    return (
      'Node ' +
      oldestNode +
      ' or newer is needed, this is ' +
      version +
      ': install a current one from https://nodejs.org.'
    );
  }
  return undefined;
}

var fault = findFault(process.platform, process.versions.node);
if (fault !== undefined) {
  process.stderr.write(fault + '\n');
  process.exit(1);
}
