import { resolve } from 'node:path';

/** The checkout that this code is part of. */
export const repositoryRoot = resolve(import.meta.dirname, '../../..');
