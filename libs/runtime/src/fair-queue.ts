import { setImmediate as nextTurn } from 'node:timers/promises';
import { RecentWork } from './recent-work.ts';

export interface FairQueueOptions {
  /** The total weight of the work in progress. */
  capacity: number;
  /** The most of it that one owner has; half by default. */
  share?: number;
  /**
   * The most of it that an owner has that does most of the work while others are served, unless a single piece weighs
   * more; as much as otherwise by default.
   */
  shareInCompany?: number;
  /**
   * Whether owners rest between their work; true by default. What is shared may also be memory, which does not get
   * tired.
   */
  rests?: boolean;
  /** How many may wait per owner. */
  maxWaiting: number;
  /**
   * How long one may wait, in milliseconds; up to a quarter less, so that those who came together do not all leave
   * together.
   */
  maxWaitMs: number;
}

/** Rejects whoever finds too many waiting before it, or has waited for too long. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
  /** Whether it waited for other work of the same owner. */
  readonly behindItself: boolean;

  constructor(message: string, behindItself: boolean) {
    super(message);
    this.behindItself = behindItself;
  }
}

export interface WaitOptions {
  /** Ends the wait. */
  signal?: AbortSignal | undefined;
  /** Waits for as long as it takes: for work that was begun and should be finished. */
  patient?: boolean;
}

export interface EnterOptions extends WaitOptions {
  /** The part of a share that this owner has; all of it by default. */
  part?: number | undefined;
}

/**
 * Work that weighs more than this part of a share is heavy. After it any owner rests for as long as it took: the others
 * have half of the time.
 */
const heavy = 0.5;
/**
 * An owner that does most of the work, and has more of it waiting, rests for this multiple of the time that its work
 * took: the others have four fifths of the time.
 */
const restOfGreedy = 4;
/** What its own users wait at most because an owner rests. */
const longestRestMs = 1_000;

interface Waiting {
  weight: number;
  admit: () => void;
}

interface Owner {
  /** Of a share. */
  part: number;
  /** The weight of its work in progress, and of the work from which it rests. */
  taken: number;
  waiting: Set<Waiting>;
}

/**
 * Bounds the work in progress, and shares it fairly between owners, such as tenants:
 *
 *                there is room in the capacity and in its share,
 *                and nothing waits that has to be before it
 *     enter ────────────────────────────────────────────────────▶ working ──────▶ resting ──────▶ gone
 *        │                                                           ▲    disposal
 *        └────▶ waiting ─────────────────────────────────────────────┘
 *                  │     room was made, and it is its owner's turn
 *                  └────▶ QueueFull: too many of its owner are waiting, or it has waited for too long
 *
 * - Share: One owner never has more than its share in progress, so that one which sends more than it can be served waits
 *   for itself, whatever its work weighs. In company, one that does most of the work has less of it.
 * - Turns: Owners with waiting work take turns. It begins in a later turn of the event loop, so that a row of it does
 *   not block the process.
 * - Rest: In company, work is followed by a rest, which takes room in its owner's share, and none that others could
 *   have: what the work causes elsewhere, and later, takes time from the others, too.
 *
 * An owner is in company while others are served without waiting (recent-work.ts). Without company it has all of its
 * share, and never rests.
 */
export class FairQueue {
  readonly #capacity: number;
  readonly #share: number;
  readonly #shareInCompany: number;
  readonly #rests: boolean;
  readonly #options: FairQueueOptions;
  /** Those with work in progress or waiting, whose turn it is first. */
  readonly #owners = new Map<string, Owner>();
  #taken = 0;
  readonly #recent = new RecentWork();

  constructor(options: FairQueueOptions) {
    this.#options = options;
    this.#capacity = options.capacity;
    this.#share = options.share ?? Math.ceil(options.capacity / 2);
    this.#shareInCompany = options.shareInCompany ?? this.#share;
    this.#rests = options.rests ?? true;
  }

  /**
   * Waits until the owner may work; the work ends when the result is disposed of. Work that weighs more than one
   * owner's share counts as the share. Rejects with {@link QueueFull}, or with the reason of the signal.
   */
  async enter(name: string, weight: number, { part, ...waiting }: EnterOptions = {}): Promise<Disposable> {
    waiting.signal?.throwIfAborted();
    const owner = this.#ownerOf(name, part);
    const bounded = Math.min(weight, this.#share);
    if (this.#fits(name, owner, bounded)) {
      this.#recent.noteServed(name);
      this.#take(owner, bounded);
    } else await this.#wait(name, owner, bounded, waiting);
    return this.#begin(name, owner, bounded);
  }

  /** Counts work that cannot wait, whether there is room for it or not. */
  enterAtOnce(name: string, weight: number): Disposable {
    const owner = this.#ownerOf(name);
    this.#take(owner, weight);
    return this.#begin(name, owner, weight);
  }

  #begin(name: string, owner: Owner, weight: number): Disposable {
    const beganMs = performance.now();
    this.#recent.noteWork(name, weight);
    let working = true;
    return {
      [Symbol.dispose]: () => {
        if (!working) return;
        working = false;
        const restMs = this.#rests ? this.#restMs(name, owner, weight, performance.now() - beganMs) : 0;
        // While it rests, the room is for others.
        this.#taken -= weight;
        const leave = (): void => this.#leave(name, owner, weight);
        if (restMs > 0) {
          this.#admitWaiting();
          setTimeout(leave, restMs);
        } else leave();
      },
    };
  }

  #restMs(name: string, { waiting }: Owner, weight: number, workMs: number): number {
    if (!this.#recent.hasCompany(name)) return 0;
    const isHeavy = weight > heavy * this.#share;
    const isGreedy = waiting.size > 0 && this.#recent.doesMost(name);
    const factor = isGreedy ? restOfGreedy : isHeavy ? 1 : 0;
    return Math.min(factor * workMs, longestRestMs);
  }

  #ownerOf(name: string, part = 1): Owner {
    const known = this.#owners.get(name);
    if (known !== undefined) return known;
    const owner: Owner = { part, taken: 0, waiting: new Set() };
    this.#owners.set(name, owner);
    return owner;
  }

  /** Whether work can begin without overtaking other work of this owner, or work that waits for room. */
  #fits(name: string, owner: Owner, weight: number): boolean {
    if (this.#taken + weight > this.#capacity || !this.#isWithinShare(name, owner, weight) || owner.waiting.size > 0)
      return false;
    return ![...this.#owners].some(([name, other]) => this.#nextWithin(name, other) !== undefined);
  }

  #isWithinShare(name: string, { part, taken }: Owner, weight: number): boolean {
    const isBounded = this.#recent.doesMost(name) && this.#recent.hasCompany(name);
    return taken === 0 || taken + weight <= part * (isBounded ? this.#shareInCompany : this.#share);
  }

  /** The first waiting work of an owner, if its share has room for it. */
  #nextWithin(name: string, owner: Owner): Waiting | undefined {
    const [next] = owner.waiting;
    return next !== undefined && this.#isWithinShare(name, owner, next.weight) ? next : undefined;
  }

  #take(owner: Owner, weight: number): void {
    owner.taken += weight;
    this.#taken += weight;
  }

  async #wait(name: string, owner: Owner, weight: number, { signal, patient = false }: WaitOptions): Promise<void> {
    if (owner.waiting.size >= this.#options.maxWaiting) throw new QueueFull('too many are waiting', true);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry: Waiting = { weight, admit: resolve };
    const giveUp = (reason: unknown): void => {
      if (!owner.waiting.delete(entry)) return;
      this.#forgetIdle(name, owner);
      reject(reason);
      // It may have held back others.
      this.#admitWaiting();
    };
    const abort = (): void => giveUp(signal!.reason);
    const maxWaitMs = this.#options.maxWaitMs * (0.75 + Math.random() / 4);
    const timer = patient
      ? undefined
      : setTimeout(() => giveUp(new QueueFull('waited for too long', owner.taken > 0)), maxWaitMs);
    owner.waiting.add(entry);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
    await nextTurn();
  }

  #leave(name: string, owner: Owner, weight: number): void {
    owner.taken -= weight;
    this.#forgetIdle(name, owner);
    this.#admitWaiting();
  }

  #admitWaiting(): void {
    while (this.#admitNext());
  }

  /**
   * Owners take turns: the one whose work was admitted last comes last. If there is no room for the work of the first,
   * nobody overtakes it.
   */
  #admitNext(): boolean {
    for (const [name, owner] of this.#owners) {
      const next = this.#nextWithin(name, owner);
      if (next === undefined) continue;
      if (this.#taken + next.weight > this.#capacity) return false;
      owner.waiting.delete(next);
      this.#take(owner, next.weight);
      this.#owners.delete(name);
      this.#owners.set(name, owner);
      next.admit();
      return true;
    }
    return false;
  }

  #forgetIdle(name: string, owner: Owner): void {
    if (owner.taken === 0 && owner.waiting.size === 0 && this.#owners.get(name) === owner) this.#owners.delete(name);
  }
}
