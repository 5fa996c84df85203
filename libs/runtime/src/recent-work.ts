/** A second after the others have gone, an owner has everything to itself again. */
const recentMs = 1_000;
/**
 * Whoever does more than this part of all work does most of it: of two owners that send equally much, neither is held
 * up.
 */
const most = 0.6;

/** The weight of the work that began in one period, in total and by owner. */
interface Period {
  beganMs: number;
  total: number;
  byOwner: Map<string, number>;
}

/** Who has done how much lately, and who was served. */
export class RecentWork {
  #period = newPeriod();
  #periodBefore = newPeriod();
  /** The last two owners whose work began without waiting, and when. */
  #served = { name: '', ms: Number.NEGATIVE_INFINITY };
  #servedBefore = this.#served;

  /** Work of this owner begins. */
  noteWork(name: string, weight: number): void {
    const nowMs = performance.now();
    const ageMs = nowMs - this.#period.beganMs;
    if (ageMs >= recentMs) {
      this.#periodBefore = ageMs < 2 * recentMs ? this.#period : newPeriod();
      this.#period = { ...newPeriod(), beganMs: nowMs };
    }
    this.#period.total += weight;
    this.#period.byOwner.set(name, (this.#period.byOwner.get(name) ?? 0) + weight);
  }

  /** Work of this owner begins without having waited. */
  noteServed(name: string): void {
    if (this.#served.name !== name) this.#servedBefore = this.#served;
    this.#served = { name, ms: performance.now() };
  }

  doesMost(name: string): boolean {
    const [now, before] = [this.#period, this.#periodBefore];
    const own = (now.byOwner.get(name) ?? 0) + (before.byOwner.get(name) ?? 0);
    return own > most * (now.total + before.total);
  }

  /** Whether another owner was served without waiting. */
  hasCompany(name: string): boolean {
    const other = this.#served.name === name ? this.#servedBefore : this.#served;
    return performance.now() - other.ms < recentMs;
  }
}

function newPeriod(): Period {
  return { beganMs: Number.NEGATIVE_INFINITY, total: 0, byOwner: new Map() };
}
