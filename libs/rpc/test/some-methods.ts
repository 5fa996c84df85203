import type { Definition } from '../src/definition.ts';
import type { Callers, Handlers } from '../src/index.ts';

/** The handlers of a service, of which a test needs a few: the others reject. */
export function someHandlers<D extends Definition>(definition: D, own: Partial<Handlers<D>>): Handlers<D> {
  const unused = () => Promise.reject(new Error('not called in this test'));
  return { ...Object.fromEntries(Object.keys(definition).map((name) => [name, unused])), ...own } as Handlers<D>;
}

/** The callers of its methods: nobody, unless stated otherwise. */
export function someCallers<D extends Definition>(definition: D, own: Partial<Callers<D>> = {}): Callers<D> {
  return { ...Object.fromEntries(Object.keys(definition).map((name) => [name, []])), ...own };
}
