import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CalendarUnderTest, startCalendar } from './calendar-under-test.ts';

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

const providers = [
  { crmId: 'one', providerReference: 'p1' },
  { crmId: 'one', providerReference: 'p2' },
  { crmId: 'two', providerReference: 'p1' },
];

async function idOf({ crmId, providerReference }: (typeof providers)[number]) {
  const { provider } = await calendar.identity.getProvider({
    crmId,
    key: { $case: 'reference', value: providerReference },
  });
  return { crmId, providerId: provider!.id };
}

it('operators learn of which providers mails have no link: a rule decides, and without it whether there is a page', async () => {
  const [one, other, third] = await Promise.all(providers.map(idOf));
  const withoutLink = async () =>
    (await calendar.mailLinks.listProvidersWithoutLink({ providers: [one!, other!, third!] })).providers;
  const setRules = (
    index: number,
    rules: { page?: boolean; selfService?: boolean; defaultSelfService?: boolean; changeNotice?: number },
  ) => calendar.bookings.updateBookingRules({ ...providers[index]!, noHorizon: false, ...rules });
  expect(await withoutLink()).toEqual([one, other, third]);

  await setRules(0, { selfService: true });
  await setRules(1, { page: true });
  await setRules(2, { changeNotice: 60 });
  expect(await withoutLink()).toEqual([third]);
  await setRules(1, { selfService: false });
  expect(await withoutLink()).toEqual([other, third]);
  await setRules(1, { defaultSelfService: true });
  expect(await withoutLink()).toEqual([third]);
});

it('a provider that the calendar does not know has none', async () => {
  const unknown = { crmId: 'one', providerId: randomUUID() };
  expect(await calendar.mailLinks.listProvidersWithoutLink({ providers: [unknown] })).toEqual({ providers: [unknown] });
});
