/**
 * The buffers of a timeslot as a part of its digest. Timeslots had none at first, so without any the digest is what it
 * was.
 */
export function givenBuffers(bufferBefore: number, bufferAfter: number): number[] {
  return bufferBefore > 0 || bufferAfter > 0 ? [bufferBefore, bufferAfter] : [];
}
