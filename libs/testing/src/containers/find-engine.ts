import { getContainerRuntimeClient } from 'testcontainers';

/** Whether a container engine answers; if not, the reason. */
export async function findEngine(): Promise<{ answers: true } | { answers: false; reason: string }> {
  try {
    await getContainerRuntimeClient();
    return { answers: true };
  } catch (error) {
    return { answers: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
