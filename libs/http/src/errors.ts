/** A request that cannot be understood; the message says why. */
export class MalformedRequest extends Error {
  override readonly name = 'MalformedRequest';
}

/** Too many requests of an address wait already. */
export class TooManyStrangers extends Error {
  override readonly name = 'TooManyStrangers';
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super('Too many requests of this address wait already.');
    this.retryAfterSeconds = retryAfterSeconds;
  }
}
