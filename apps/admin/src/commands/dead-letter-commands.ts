import { DeadLetterServiceService } from '@scheduling/contracts/operations/v1';
import { createClient, type RpcClient } from '@scheduling/rpc';
import type { Command } from 'commander';
import { callOptions } from '../call-options.ts';
import { type ConsumingService, consumingServices } from '@scheduling/events';
import { formatTable } from '../table.ts';
import { addressOf, output, print, showTime, style } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

export function addDeadLetterCommands(deadLetters: Command): void {
  deadLetters
    .command('list')
    .description('list all dead letters, newest first')
    .action(async () => {
      const lists = consumingServices.map((service) =>
        withDeadLetters(service, (client) => client.listDeadLetters({})),
      );
      const letters = (await Promise.all(lists)).flatMap((list) => list.deadLetters);
      letters.sort((one, other) => other.failedAt!.getTime() - one.failedAt!.getTime());
      const rows = letters.map(({ consumer, eventId, attempts, failedAt, error }) => [
        consumer,
        eventId,
        showTime(failedAt),
        String(attempts),
        error,
      ]);
      output.write(formatTable(['consumer', 'event', 'failed', 'attempts', 'error'], rows));
    });
  deadLetters
    .command('show <consumer> <event>')
    .description('show a dead letter and its data')
    .action((consumer: string, eventId: string) =>
      withDeadLetters(serviceOf(consumer), async (client) => {
        const { deadLetter, data } = await client.getDeadLetter({ consumer, eventId });
        const { failedAt, ...facts } = deadLetter!;
        const lines = Object.entries({ ...facts, failedAt: showTime(failedAt), data: data ?? 'cannot be read' });
        for (const [name, value] of lines) print(`${style('bold', name.padEnd(10))} ${value}`);
      }),
    );
  deadLetters
    .command('retry <consumer> <event>')
    .description('process the event again')
    .action((consumer: string, eventId: string) =>
      withDeadLetters(serviceOf(consumer), async (client) => {
        const { failure } = await client.retryDeadLetter({ consumer, eventId });
        if (failure !== undefined) throw new UsageError(`It failed again, and remains a dead letter: ${failure}`);
        print(`${style('green', '✔')} Processed the event.`);
      }),
    );
  deadLetters
    .command('drop <consumer> <event>')
    .description('delete a dead letter; its event is never processed')
    .action((consumer: string, eventId: string) =>
      withDeadLetters(serviceOf(consumer), async (client) => {
        await client.dropDeadLetter({ consumer, eventId });
        print(`${style('green', '✔')} Dropped the dead letter.`);
      }),
    );
}

async function withDeadLetters<T>(
  service: ConsumingService,
  use: (client: RpcClient<DeadLetterServiceService>) => Promise<T>,
): Promise<T> {
  using client = createClient(DeadLetterServiceService, service, addressOf(service), callOptions());
  return await use(client);
}

function serviceOf(consumer: string): ConsumingService {
  const service = consumingServices.find((name) => consumer.startsWith(`${name}-`));
  if (!service) throw new UsageError(`No service has a consumer "${consumer}": "dead-letters list" shows the names.`);
  return service;
}
