import { type EraseProviderResponse, ProviderErasureServiceService } from '@scheduling/contracts/calendar/v1';
import { createClient } from '@scheduling/rpc';
import type { Command } from 'commander';
import { callOptions } from '../call-options.ts';
import { addressOf, print, style } from '../terminal.ts';

export function addProviderCommand(program: Command): void {
  program
    .command('provider')
    .description('erase a provider')
    .command('erase <crmId> [reference]')
    .description(
      'delete a provider with its whole past: appointments, timeslots, opening hours, blocks, invitations and calendars. Refuses while it has customers or bookings in the future',
    )
    .option('--id <id>', 'instead of the reference: a provider that only calendar has, after a restore')
    .action(eraseProvider);
}

/** How long a part may take. Most take less than a second. */
const timeoutMs = 30_000;

/** In parts, each of which the service has erased when it answers. */
async function eraseProvider(
  crmId: string,
  reference: string | undefined,
  { id }: { id?: string },
  command: Command,
): Promise<void> {
  if ((reference === undefined) === (id === undefined))
    command.error('error: give either the reference of the provider or --id');
  using client = createClient(ProviderErasureServiceService, 'calendar', addressOf('calendar'), {
    ...callOptions(),
    timeoutMs,
  });
  const erased = { appointments: 0, timeslots: 0, others: 0 };
  try {
    let part: EraseProviderResponse;
    do {
      part = await client.eraseProvider({ crmId, reference: reference ?? '', id });
      erased.appointments += part.appointments;
      erased.timeslots += part.timeslots;
      erased.others += part.others;
    } while (!part.deleted);
    print(`${style('green', '✔')} The provider ${reference ?? id} is deleted.`);
  } finally {
    const { appointments, timeslots, others } = erased;
    print(
      `  Erased: ${appointments} appointments with their participations, ${timeslots} timeslots, and ${others} opening hours, blocks, invitations and calendars.`,
    );
  }
}
