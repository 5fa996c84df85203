import { DomainError } from './domain-error.ts';

/** Undefined for something that does not exist, or has been deleted since the caller learned of it. */
export async function undefinedIfNotFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof DomainError && error.category === 'not_found') return undefined;
    throw error;
  }
}
