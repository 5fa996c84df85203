import { expect, it } from 'vitest';
import { writeFeedEvent } from '@scheduling/calendar-file/feed';
import { type AppointmentFacts, describeAppointment, type PersonFacts, writing } from './describe-appointment.ts';

const facts = (changes: Partial<Record<number, unknown>> = {}): AppointmentFacts => {
  const values: unknown[] = ['id', 1_900_000_000, 1_900_003_600, 'Yoga', 'flow', null, 8, 3, 0, null];
  return values.map((value, index) => (index in changes ? changes[index] : value)) as AppointmentFacts;
};
const [description, productReference, address, booked, requested, persons] = [3, 4, 5, 7, 8, 9];

const summaryOf = (changes: Partial<Record<number, unknown>>, language: 'de' | 'en' = 'en') =>
  describeAppointment(facts(changes), language, false).summary;

it('is titled by the description, or else by the product, and the seats', () => {
  expect(summaryOf({})).toBe('Yoga (3 of 8)');
  expect(summaryOf({ [description]: ' \n' })).toBe('flow (3 of 8)');
  expect(summaryOf({ [description]: null, [productReference]: 'a\r\nb\uD800' })).toBe('a b\uFFFD (3 of 8)');
  expect(summaryOf({ [booked]: 0, [requested]: 2 })).toBe('Yoga (0 of 8, 2 requested)');
  expect(summaryOf({ [booked]: 0, [requested]: 2 }, 'de')).toBe('Yoga (0 von 8, 2 angefragt)');
});

it('is tentative as long as somebody has asked for it and nobody has it', () => {
  const isTentative = (taken: number, asked: number) =>
    describeAppointment(facts({ [booked]: taken, [requested]: asked }), 'en', false).isTentative;
  expect([isTentative(0, 0), isTentative(0, 1), isTentative(1, 0), isTentative(1, 1)]).toEqual([
    false,
    true,
    false,
    false,
  ]);
});

it('names those who take part, each in a line, and counts the others', () => {
  const people: PersonFacts[] = [
    [true, 'Ada\nLovelace'],
    [false, 'Grace Hopper', '+49 170', null, 'Knee,\r\nleft'],
    [true, null, null, null, null],
  ];
  const described = (language: 'de' | 'en', taken: number) =>
    describeAppointment(facts({ [booked]: taken, [requested]: 1, [persons]: people }), language, true).description;
  expect(described('en', 2).split('\n')).toEqual([
    'Ada Lovelace',
    'Grace Hopper (requested), +49 170, Knee, left',
    'Name removed',
  ]);
  expect(described('en', 3).split('\n').at(-1)).toBe('and one more');
  expect(described('de', 9).split('\n').slice(1)).toEqual([
    'Grace Hopper (angefragt), +49 170, Knee, left',
    'Name entfernt',
    'und 7 weitere Personen',
  ]);
  expect(describeAppointment(facts({ [persons]: null }), 'en', true).description).toBe('and 3 more');
  expect(describeAppointment(facts({}), 'en', false).description).toBe('');
});

/** Whoever changes what follows raises `writing`. */
it('is written as in this version of the texts', () => {
  const address1 = { street: 'Lange Straße', number: '1', zip: '10115', city: 'Berlin', countryCode: 'DE' };
  const people: PersonFacts[] = [
    [true, 'Ada', '+49 170', 'ada@example.com', 'Knee'],
    [false, null],
  ];
  const changes = { [address]: address1, [requested]: 1, [persons]: people };
  const written = (['de', 'en'] as const).map((language) =>
    writeFeedEvent(describeAppointment(facts(changes), language, true)),
  );
  expect([writing, ...written.map((each) => each.split('\r\n'))]).toEqual([
    1,
    [
      'UID:id@appointment.scheduling',
      'DTSTART:20300317T174640Z',
      'DTEND:20300317T184640Z',
      'SUMMARY:Yoga (3 von 8\\, 1 angefragt)',
      'LOCATION:Lange Straße 1\\, 10115 Berlin\\, Deutschland',
      'DESCRIPTION:Ada\\, +49 170\\, ada@example.com\\, Knee\\nName entfernt (angefra',
      ' gt)\\nund 2 weitere Personen',
      'STATUS:CONFIRMED',
      'X-MICROSOFT-CDO-BUSYSTATUS:BUSY',
      '',
    ],
    [
      'UID:id@appointment.scheduling',
      'DTSTART:20300317T174640Z',
      'DTEND:20300317T184640Z',
      'SUMMARY:Yoga (3 of 8\\, 1 requested)',
      'LOCATION:Lange Straße 1\\, 10115 Berlin\\, Germany',
      'DESCRIPTION:Ada\\, +49 170\\, ada@example.com\\, Knee\\nName removed (requeste',
      ' d)\\nand 2 more',
      'STATUS:CONFIRMED',
      'X-MICROSOFT-CDO-BUSYSTATUS:BUSY',
      '',
    ],
  ]);
});
