import { HoursOverviewServiceService } from '@scheduling/contracts/calendar/v1';
import { createClient } from '@scheduling/rpc';
import type { Command } from 'commander';
import { callOptions } from '../call-options.ts';
import { ageOf } from '../doctor/finding.ts';
import { formatTable } from '../table.ts';
import { addressOf, output, print, showTime, style } from '../terminal.ts';

/** So many are in an answer. */
const maxListed = 500;
/** Days are made within seconds; the clock of this machine may differ from that of the database. */
const toleranceMs = 60_000;

export function addHoursCommand(program: Command): void {
  program
    .command('hours <crmId>')
    .description('list the resources of a CRM that have opening hours, with the timeslots made from them')
    .option('--provider <reference>', 'only those of this provider')
    .action(async (crmId: string, { provider }: { provider?: string }) => {
      using client = createClient(HoursOverviewServiceService, 'calendar', addressOf('calendar'), callOptions());
      const { hours } = await client.listHours({ crmId, providerReference: provider });
      const now = new Date();
      const rows = hours.map((each) => [
        each.providerReference,
        each.resourceReference,
        each.timeZone,
        `${each.madeFrom} – ${each.madeUntil}`,
        String(each.timeslots),
        String(each.hidden),
        String(each.changed),
        showDue(each.dueAt!, now),
      ]);
      output.write(
        formatTable(
          ['provider', 'resource', 'time zone', 'days made', 'timeslots', 'hidden', 'changed', 'next day made'],
          rows,
        ),
      );
      if (hours.length < maxListed) return;
      const remedy = provider === undefined ? '; --provider shows those of one provider' : '';
      print(`${style('yellow', '!')} The first ${maxListed} are shown. There may be more${remedy}.`);
    });
}

function showDue(dueAt: Date, now: Date): string {
  const isLate = now.getTime() - dueAt.getTime() > toleranceMs;
  return isLate ? `${showTime(dueAt)}, late by ${ageOf(dueAt, now)}` : showTime(dueAt);
}
