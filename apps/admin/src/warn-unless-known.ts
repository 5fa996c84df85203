import { print, showTime, style } from './terminal.ts';

/** Says what an operator has to do if NATS holds only a part of the events since then. */
export function warnUnlessKnown(since: Date, eventsReachBackTo: Date | undefined, consequence: string): void {
  if (eventsReachBackTo !== undefined && eventsReachBackTo <= since) return;
  const held = eventsReachBackTo ? `events from ${showTime(eventsReachBackTo)} on` : 'no events';
  print(`${style('yellow', '!')} NATS holds ${held}. ${consequence}`);
}
