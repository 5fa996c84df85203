import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FairQueue, QueueFull } from './fair-queue.ts';

const patient = { maxWaiting: 100, maxWaitMs: 60_000 };

/** Enters without waiting for the turn, and notes its name when it comes. */
function entering(queue: FairQueue, order: string[]) {
  return (owner: string, name: string, weight = 1, signal?: AbortSignal): Promise<Disposable> => {
    const turn = queue.enter(owner, weight, { signal });
    turn.then(
      () => order.push(name),
      () => order.push(`${name} rejected`),
    );
    return turn;
  };
}

/** Until the work that was admitted has begun. */
async function settle(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

describe('a fair queue', () => {
  it('admits half of its capacity for one owner, and the rest for others', async () => {
    const order: string[] = [];
    const enter = entering(new FairQueue({ capacity: 4, ...patient }), order);
    const first = await enter('a', 'a1');
    await enter('a', 'a2');
    void enter('a', 'a3');
    await enter('b', 'b1');
    await enter('b', 'b2');
    expect(order).toEqual(['a1', 'a2', 'b1', 'b2']);
    await enter('c', 'c1', 1, AbortSignal.timeout(1)).catch(() => undefined);
    first[Symbol.dispose]();
    await expect.poll(() => order).toEqual(['a1', 'a2', 'b1', 'b2', 'c1 rejected', 'a3']);
  });

  it('admits less for one owner while another one is served, but always one piece of work', async () => {
    const order: string[] = [];
    const enter = entering(new FairQueue({ capacity: 8, shareInCompany: 2, ...patient }), order);
    const alone = await Promise.all(['a1', 'a2', 'a3', 'a4'].map((name) => enter('a', name)));
    for (const turn of alone) turn[Symbol.dispose]();
    await enter('b', 'b1');
    const inCompany = await Promise.all(['a5', 'a6'].map((name) => enter('a', name)));
    const ended = new AbortController();
    const third = enter('a', 'a7', 1, ended.signal);
    await settle();
    expect(order).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'a5', 'a6']);
    ended.abort();
    await expect(third).rejects.toThrow('aborted');
    for (const turn of inCompany) turn[Symbol.dispose]();
    void enter('a', 'heavy', 4);
    await settle();
    expect(order.at(-1)).toBe('heavy');
  });

  it('admits less for an owner who has a part of a share, but always one piece of work', async () => {
    const order: string[] = [];
    const queue = new FairQueue({ capacity: 16, ...patient });
    const enter = async (name: string, weight: number): Promise<Disposable> => {
      const turn = await queue.enter('pages', weight, { part: 1 / 4 });
      order.push(name);
      return turn;
    };
    const first = await enter('first', 2);
    const heavy = enter('heavy', 4);
    (await queue.enter('other', 8))[Symbol.dispose]();
    await settle();
    expect(order).toEqual(['first']);
    first[Symbol.dispose]();
    await heavy;
    expect(order).toEqual(['first', 'heavy']);
  });

  it('lets owners take turns', async () => {
    const order: string[] = [];
    const queue = new FairQueue({ capacity: 2, ...patient });
    const enter = entering(queue, order);
    const turns = [await enter('x', 'x'), await enter('y', 'y')];
    const waiting = ['a1', 'a2', 'a3', 'b1', 'c1'].map(async (name) => {
      using _turn = await enter(name[0]!, name);
    });
    for (const turn of turns) turn[Symbol.dispose]();
    await Promise.all(waiting);
    expect(order.slice(2, 5).toSorted()).toEqual(['a1', 'b1', 'c1']);
    expect(order.slice(5)).toEqual(['a2', 'a3']);
  });

  it('does not let light work overtake heavy work that waits for room', async () => {
    const order: string[] = [];
    const enter = entering(new FairQueue({ capacity: 4, ...patient }), order);
    const running = [await enter('a', 'a1'), await enter('b', 'b1'), await enter('c', 'c1')];
    void enter('d', 'heavy', 2);
    void enter('e', 'light');
    running[0]![Symbol.dispose]();
    await settle();
    expect(order.slice(3)).toEqual(['heavy']);
    running[1]![Symbol.dispose]();
    await settle();
    expect(order.slice(3)).toEqual(['heavy', 'light']);
  });

  it('admits work that weighs more than a share, alone', async () => {
    const order: string[] = [];
    const enter = entering(new FairQueue({ capacity: 4, ...patient }), order);
    const huge = await enter('a', 'huge', 100);
    void enter('a', 'next');
    await enter('b', 'b1');
    expect(order).toEqual(['huge', 'b1']);
    huge[Symbol.dispose]();
    huge[Symbol.dispose]();
    await expect.poll(() => order).toEqual(['huge', 'b1', 'next']);
  });

  it('shares memory as it shares work, and counts what is there already', async () => {
    const order: string[] = [];
    const queue = new FairQueue({ capacity: 8, share: 3, rests: false, ...patient });
    const enter = entering(queue, order);
    const present = queue.enterAtOnce('a', 5);
    const waiting = enter('a', 'a1', 2);
    await enter('b', 'b1', 2);
    present[Symbol.dispose]();
    const held = await waiting;
    void enter('a', 'a2', 2);
    await settle();
    expect(order).toEqual(['b1', 'a1']);
    held[Symbol.dispose]();
    await settle();
    expect(order).toEqual(['b1', 'a1', 'a2']);
  });

  it('rejects who would wait for too long or behind too many, and forgets who left', async () => {
    const queue = new FairQueue({ capacity: 2, maxWaiting: 2, maxWaitMs: 20 });
    const running = await queue.enter('a', 1);
    const leaving = new AbortController();
    const left = queue.enter('a', 1, { signal: leaving.signal });
    const late = queue.enter('a', 1);
    await expect(queue.enter('a', 1)).rejects.toThrow(QueueFull);
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    await expect(late).rejects.toThrow(QueueFull);
    running[Symbol.dispose]();
    using _turn = await queue.enter('a', 1);
  });

  it('lets an owner that sends more than its share rest while others are served at once', async () => {
    const order: string[] = [];
    const queue = new FairQueue({ capacity: 2, ...patient });
    const enter = entering(queue, order);
    const alone = await enter('a', 'a1');
    const next = enter('a', 'a2');
    alone[Symbol.dispose]();
    await settle();
    expect(order).toEqual(['a1', 'a2']);

    using _other = await enter('b', 'b1');
    const last = enter('a', 'a3');
    const beganMs = performance.now();
    await delay(10);
    const workMs = performance.now() - beganMs;
    (await next)[Symbol.dispose]();
    await last;
    // The rest is four times as long as the work. Timers count whole milliseconds, from a moment ago, so they may end early.
    expect(performance.now() - beganMs - workMs).toBeGreaterThan(3 * workMs);
  });

  it('lets nobody rest who sends more than its share, but does no more than another one', async () => {
    const order: string[] = [];
    const enter = entering(new FairQueue({ capacity: 4, ...patient }), order);
    const first = await enter('a', 'a1');
    for (const name of ['a2', 'b1', 'b2']) await enter(name[0]!, name);
    void enter('a', 'a3');
    await delay(10);
    first[Symbol.dispose]();
    await settle();
    expect(order).toEqual(['a1', 'a2', 'b1', 'b2', 'a3']);
  });

  it('lets an owner rest after heavy work while others are served at once', async () => {
    const queue = new FairQueue({ capacity: 4, ...patient });
    const workMs = 60;
    const heavyWork = async (): Promise<void> => {
      using _turn = await queue.enter('a', 2);
      await delay(workMs);
    };
    const isAtOnce = (entering: Promise<Disposable>): Promise<boolean> =>
      Promise.race([entering.then(() => true), nextTurn(false)]);
    await heavyWork();
    const alone = queue.enter('a', 2);
    expect(await isAtOnce(alone)).toBe(true);
    (await alone)[Symbol.dispose]();
    using _other = await queue.enter('b', 1);
    await heavyWork();
    const beganMs = performance.now();
    const rested = queue.enter('a', 2);
    expect(await isAtOnce(queue.enter('b', 1))).toBe(true);
    (await rested)[Symbol.dispose]();
    expect(performance.now() - beganMs).toBeGreaterThanOrEqual(workMs - 2);
  });
});
