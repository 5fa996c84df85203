import { beforeAll, describe, expect, it } from 'vitest';
import { someOf } from '@scheduling/testing';
import { type Answer, path, type Problem } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  newAppointment,
  newTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { blocksAt, createBlock, newBlock } from './blocks.ts';
import { hoursAt, newHours, newWeeklyWindow, newWindow } from './hours.ts';
import { invitationsAt, newInvitation, openBookingPage } from './invitations.ts';

/** Which values a kind of field accepts and rejects, given its maximum length. */
interface Kind {
  accepts: (maxLength: number) => unknown[];
  refuses: (maxLength: number) => unknown[];
  maxLength: number;
}

/** A field of a request, by its JSON pointer. */
interface Field {
  pointer: string;
  kind: Kind;
  required?: boolean;
  maxLength?: number;
  accepts?: unknown[];
  refuses?: unknown[];
  /** On an update only texts can be cleared (interface 1). */
  nullable?: boolean;
  /** The code if it is missing, where a service checks this and therefore after all other fields. */
  codeWhenMissing?: string;
}

interface Operation {
  body: () => Record<string, unknown>;
  send: (body: Record<string, unknown>) => Promise<Answer<Problem>>;
  fields: Field[];
}

const noText = [5, true, [], {}];
const controlCharacters = ['a\u0000b', 'a\u0007b', 'a\u001Bb', 'a\u007Fb', 'a\u0085b'];
/** In code points, regardless of their size (interface 8). */
const filled = (length: number, end = ''): string => {
  const start = unique('f');
  return start + '🦊'.repeat(length - start.length - end.length) + end;
};
const email = (length: number): string => {
  const [start, end] = [`${unique('e')}@`, '.example'];
  const labels = `${`${'d'.repeat(60)}.`.repeat(4)}${'d'.repeat(60)}`;
  return start + labels.slice(0, length - start.length - end.length) + end;
};

const line: Kind = {
  maxLength: 255,
  accepts: (maxLength) => [filled(maxLength), 'O\'Neill <b>&amp; "co"'],
  refuses: (maxLength) => [
    ...noText,
    filled(maxLength + 1),
    'x'.repeat(maxLength + 1),
    ...controlCharacters,
    'a\nb',
    'a\tb',
    'a\uD800b',
  ],
};
const reference: Kind = { ...line, accepts: (maxLength) => [filled(maxLength, '@test'), `${unique('ü/?#% ')}@test`] };
/** In the path of other requests it says what they are about. */
const ownReference: Kind = {
  ...reference,
  accepts: (maxLength) => [...reference.accepts(maxLength), `${unique('..')}/../.`],
  refuses: (maxLength) => [...reference.refuses(maxLength), '.', '..'],
};
const text: Kind = {
  maxLength: 1_024,
  accepts: (maxLength) => [filled(maxLength), 'a\n\tb\r\nc'],
  refuses: (maxLength) => [
    ...noText,
    filled(maxLength + 1),
    'x'.repeat(maxLength + 1),
    ...controlCharacters,
    'a\uD800b',
  ],
};
const emailAddress: Kind = {
  maxLength: 254,
  accepts: (maxLength) => [email(maxLength), `${unique('jürgen')}+tag@exämple.test`, `${unique("o'neill")}@x`],
  refuses: (maxLength) => [
    ...noText,
    email(maxLength + 1),
    'nobody',
    '@test.example',
    'a@',
    'a b@test.example',
    'a@b@c',
    'a@b..c',
    'a@-b',
    'a\nb@test.example',
    'a\uD800@test.example',
    ...controlCharacters.map((each) => `${each}@test.example`),
  ],
};
const dateTime: Kind = {
  maxLength: 0,
  accepts: () => [],
  refuses: () => [
    ...noText,
    'tomorrow',
    '2031-03-03',
    '2031-02-29T09:00',
    '2031-13-01T09:00',
    '2031-03-03T24:00',
    '2031-03-03T09:60',
    '2031-03-03 09:00',
    '2031-03-03T09:00+25:00',
    '1899-12-31T23:59',
    '9999-01-01T00:00',
    '2031-03-03T09:00\n',
    '2031-03-03T09:00:61',
    '2031-03-03T09:00.5',
    '2031-03-03T09:00+1',
    '0000-01-01T10:00',
    '+12030-01-01T10:00',
  ],
};
const date: Kind = {
  maxLength: 0,
  accepts: () => [],
  refuses: () => [
    ...noText,
    'tomorrow',
    '2031-02-29',
    '2031-13-01',
    '2031-3-3',
    '20310303',
    '03.03.2031',
    '2031-03-03T09:00',
    '2031-03-03\n',
    '1899-12-31',
    '9999-01-01',
    '0000-01-01',
  ],
};
const timeOfDay: Kind = {
  maxLength: 0,
  accepts: () => ['00:00', '09:01'],
  refuses: () => [
    ...noText,
    'noon',
    '9:00',
    '24:00',
    '09:60',
    '0900',
    '9am',
    '09:00:00',
    '09:00Z',
    ' 09:00',
    '09:00\n',
  ],
};
const endTimeOfDay: Kind = {
  ...timeOfDay,
  accepts: () => ['00:00', '08:59', '23:59', '24:00'],
  refuses: () => [...timeOfDay.refuses(0).filter((value) => value !== '24:00'), '24:01', '25:00'],
};
const integerOf = (minimum: number, maximum: number): Kind => ({
  maxLength: 0,
  accepts: () => [],
  refuses: () => ['5', '', true, [], {}, 1.5, minimum - 1, maximum + 1, 1e300],
});
const raster = integerOf(1, 525_600);
const capacity = integerOf(0, 1_000_000);
const buffer: Kind = { ...integerOf(0, 1_440), accepts: () => [0, 1_440] };
const flag: Kind = { maxLength: 0, accepts: () => [true, false], refuses: () => ['true', '', 1, 0, [], {}] };
const oneOf = (...values: string[]): Kind => ({
  maxLength: 0,
  accepts: () => values,
  refuses: () => [...noText, values[0]!.toLowerCase(), ` ${values[0]}`, 'OTHER'],
});
const participationState = oneOf('RESERVED', 'REQUESTED', 'BOOKED', 'CANCELED', 'DELETED');
const object: Kind = { maxLength: 0, accepts: () => [], refuses: () => ['text', 5, true, []] };
const list: Kind = { maxLength: 0, accepts: () => [], refuses: () => ['text', 5, true, {}] };

let crm: TestCrm;
let practice: Practice;
let appointment: string;
let participation: string;
let timeslot: string;
/** Its first slot has seats for all bookings of this file. */
let roomyTimeslot: string;
let openAppointment: string;
let changing: string;
let booking: string;
let ruled: Practice;
/** With a booking page. */
let inviting: Practice;
let member: string;

beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
  appointment = await createAppointment(practice, { capacity: 1_000_000 });
  participation = await createParticipation(practice, appointment);
  const slot = newTimeslot(practice, { start: '2031-08-01T09:00', end: '2031-08-01T18:00' });
  const roomySlot = newTimeslot(practice, { resourceReference: unique('room'), defaultCapacity: 1_000_000 });
  await crm.post(`${practice.at}/timeslots`, { timeslots: [slot, roomySlot] });
  timeslot = slot['reference'] as string;
  roomyTimeslot = roomySlot['reference'] as string;
  openAppointment = await createAppointment(practice, { acceptBookings: true, capacity: 1_000_000 });
  changing = await createAppointment(practice);
  booking = await createParticipation(practice, appointment);
  [ruled, inviting] = [await createPractice(crm), await createPractice(crm)];
  await openBookingPage(inviting);
  member = `${unique('member')}@test`;
  await crm.post('/user', { reference: member, ...newPerson() });
});

function newPerson(): Record<string, unknown> {
  return {
    email: `${unique('e')}@test.example`,
    username: unique('u'),
    lastName: 'Last',
    firstName: 'First',
    phone: '1',
    mobile: '2',
  };
}

const forbiddenInUsernames = ['/', '?', ':', '&', '#', '\\'];
const personFields: Field[] = [
  { pointer: '/email', kind: emailAddress, required: true },
  {
    pointer: '/username',
    kind: { ...line, accepts: (maxLength) => [filled(maxLength), `${unique('ünal')} 1.2-3_4@x`] },
    required: true,
    refuses: [
      ...forbiddenInUsernames.flatMap((character) => [`a${character}b`, character]),
      '\u200B',
      '\u00A0\u2060\u00AD',
    ],
  },
  { pointer: '/lastName', kind: line, required: true },
  { pointer: '/firstName', kind: line },
  { pointer: '/phone', kind: line },
  { pointer: '/mobile', kind: line },
];

/** On an update, a field that is required for the creation may be absent, but not cleared. */
const keptOnUpdate = ({ required, ...field }: Field): Field =>
  required ? { ...field, nullable: false, refuses: [...(field.refuses ?? []), '', ' '] } : field;

const addressFields = (pointer: string, names: string[]): Field[] =>
  names.map((name) => ({ pointer: `${pointer}/${name}`, kind: line }));

const branch: Kind = {
  ...line,
  accepts: () => ['real-estate', 'facilities', 'handyman', 'sports-and-leisure', 'misc'],
};

const invoiceFields: Field[] = [
  { pointer: '/invoiceAddress', kind: object },
  ...addressFields('/invoiceAddress', ['city', 'countryCode', 'street', 'number', 'zip']).map((field) => ({
    ...field,
    required: true,
  })),
  { pointer: '/invoiceContactName', kind: line },
  { pointer: '/invoiceCompanyName', kind: line },
  { pointer: '/invoiceTaxId', kind: line },
  { pointer: '/email', kind: emailAddress },
];

const providerFields: Field[] = [
  { pointer: '/name', kind: line, required: true },
  { pointer: '/email', kind: emailAddress },
  { pointer: '/mobile', kind: line },
  { pointer: '/phone', kind: line },
  { pointer: '/impressum', kind: text, maxLength: 10_000 },
  { pointer: '/branch', kind: branch },
  { pointer: '/subbranch', kind: line },
  { pointer: '/timeZone', kind: { ...line, accepts: () => ['Asia/Kathmandu', 'UTC'] } },
];

const priceFields = (pointer: string): Field[] => [
  { pointer: `${pointer}/price`, kind: object },
  {
    pointer: `${pointer}/price/value`,
    kind: { ...integerOf(-1_000_000_000, 1_000_000_000), refuses: () => ['5', true, [], 1e10, -1e10] },
    required: true,
    accepts: [0, -1, 49.95],
  },
  { pointer: `${pointer}/price/currency`, kind: oneOf('EUR', 'CHF'), required: true, refuses: ['USD'] },
];

const pairs = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, 'value']));
const metadataFields = (pointer: string): Field[] => [
  { pointer: `${pointer}/metadata`, kind: object, accepts: [{}, pairs(20)], refuses: [pairs(21)] },
  { pointer: `${pointer}/metadata/tier`, kind: text, maxLength: 500, nullable: false, refuses: [''] },
];
/** Each field has its own, of which another value is made. */
const newMetadata = (): object => ({ tier: 'gold' });

const optionalCustomerFields = (pointer: string): Field[] => [
  { pointer: `${pointer}/email`, kind: emailAddress },
  { pointer: `${pointer}/mobile`, kind: line },
  { pointer: `${pointer}/note`, kind: text, maxLength: 1_023 },
  {
    pointer: `${pointer}/language`,
    kind: { ...line, accepts: () => ['de', 'en-GB', 'zh-Hant'] },
    refuses: ['not a tag', '1', 'x'],
  },
  ...metadataFields(pointer),
];

/** Those of an appointment that can be changed later. */
const changeableFields: Field[] = [
  { pointer: '/capacity', kind: capacity, accepts: [0, 1_000_000], nullable: false },
  { pointer: '/acceptBookings', kind: flag, nullable: false },
  { pointer: '/description', kind: text },
  { pointer: '/contactReference', kind: reference },
  { pointer: '/notes', kind: text },
  {
    pointer: '/address',
    kind: {
      ...text,
      refuses: (maxLength) =>
        text.refuses(maxLength).filter((value) => typeof value !== 'object' || Array.isArray(value)),
    },
  },
  ...addressFields('/address', ['city', 'zip', 'country', 'street', 'number']),
];
const changeable = (): Record<string, unknown> => ({
  acceptBookings: true,
  description: 'd',
  contactReference: member,
  notes: 'n',
  address: { city: 'c', zip: 'z', country: 'DE', street: 's', number: '1' },
});

const detailFields: Field[] = [
  ...changeableFields.map((field) => ({ ...field, nullable: true })),
  { pointer: '/resourceReference', kind: ownReference, required: true },
  { pointer: '/productReference', kind: reference, required: true },
  { pointer: '/productName', kind: line },
  ...priceFields(''),
  ...metadataFields(''),
];
const details = (): Record<string, unknown> => ({
  ...changeable(),
  price: { value: 1, currency: 'EUR' },
  metadata: newMetadata(),
});

const windowFields = (pointer: string): Field[] => [
  { pointer: `${pointer}/from`, kind: timeOfDay, required: true },
  { pointer: `${pointer}/to`, kind: endTimeOfDay, required: true },
  { pointer: `${pointer}/raster`, kind: raster, required: true, accepts: [1, 180] },
  { pointer: `${pointer}/defaultCapacity`, kind: capacity, required: true, accepts: [0, 1_000_000] },
  { pointer: `${pointer}/defaultAcceptBookings`, kind: flag, required: true },
  { pointer: `${pointer}/bufferBefore`, kind: buffer },
  { pointer: `${pointer}/bufferAfter`, kind: buffer },
  {
    pointer: `${pointer}/address`,
    kind: {
      ...text,
      refuses: (maxLength) =>
        text.refuses(maxLength).filter((value) => typeof value !== 'object' || Array.isArray(value)),
    },
  },
  ...addressFields(`${pointer}/address`, ['city', 'zip', 'country', 'street', 'number']),
];

const operations: Record<string, Operation> = {
  'create user (2.1)': {
    body: () => ({ reference: `${unique('r')}@test`, ...newPerson() }),
    send: (body) => crm.post('/user', body),
    fields: [
      {
        pointer: '/reference',
        kind: { ...reference, accepts: (maxLength) => [filled(maxLength, '@test')] },
        required: true,
        refuses: ['r', '@', 'r@', '@test', 'a@b@c', ' @test'],
      },
      ...personFields,
    ],
  },
  'invite staff (4.7)': {
    body: newPerson,
    send: (body) => crm.post(`${practice.at}/staff`, body),
    fields: personFields,
  },
  'update user (4.5)': {
    body: () => ({ lastName: 'Last', firstName: 'First', phone: '1', mobile: '2' }),
    send: (body) => crm.put(path`/user/${member}`, body),
    // A new address is accepted once a minute; the others do not change it.
    fields: personFields.map((field) =>
      keptOnUpdate(field.pointer === '/email' ? { ...field, kind: { ...emailAddress, accepts: () => [] } } : field),
    ),
  },
  'create account (2.2)': {
    body: () => ({
      ownerReference: practice.owner,
      accountReference: `${unique('r')}@test`,
      branch: 'misc',
      invoiceAddress: { city: 'c', countryCode: 'DE', street: 's', number: '1', zip: 'z' },
      invoiceContactName: 'n',
      invoiceCompanyName: 'n',
      invoiceTaxId: 't',
      email: 'invoices@test.example',
    }),
    send: (body) => crm.post('/account', body),
    fields: [
      { pointer: '/ownerReference', kind: { ...line, accepts: () => [] }, required: true },
      {
        pointer: '/accountReference',
        kind: { ...reference, accepts: (maxLength) => [filled(maxLength, '@test')] },
        required: true,
      },
      { pointer: '/branch', kind: branch, required: true },
      ...invoiceFields,
    ],
  },
  'update account (4.6)': {
    body: () => ({ invoiceAddress: { city: 'c', countryCode: 'DE', street: 's', number: '1', zip: 'z' } }),
    send: (body) => crm.put(path`/account/${practice.account}`, body),
    fields: [keptOnUpdate({ pointer: '/branch', kind: branch, required: true }), ...invoiceFields],
  },
  'create provider (2.3)': {
    body: () => ({
      reference: `${unique('r')}@test`,
      ownerReference: practice.owner,
      accountReference: practice.account,
      name: 'n',
      email: 'p@test.example',
      mobile: '1',
      phone: '2',
      impressum: 'i',
      branch: 'misc',
      subbranch: 's',
      timeZone: 'Europe/Berlin',
    }),
    send: (body) => crm.post('/provider', body),
    fields: [
      { pointer: '/reference', kind: ownReference, required: true },
      { pointer: '/ownerReference', kind: { ...line, accepts: () => [] }, required: true },
      { pointer: '/accountReference', kind: { ...line, accepts: () => [] }, required: true },
      ...providerFields,
    ],
  },
  'update provider (4.7)': {
    body: () => ({ name: 'n' }),
    send: (body) => crm.put(practice.at, body),
    fields: providerFields.map(keptOnUpdate),
  },
  'create timeslots (2.4)': {
    body: () => ({
      timeslots: [
        newTimeslot(practice),
        newTimeslot(practice, { address: { city: 'c', zip: 'z', country: 'DE', street: 's', number: '1' } }),
      ],
    }),
    send: (body) => crm.post(`${practice.at}/timeslots`, body),
    fields: [
      { pointer: '/timeslots', kind: list, required: true, refuses: [[], Array.from({ length: 501 }, () => ({}))] },
      { pointer: '/timeslots/1/reference', kind: ownReference },
      { pointer: '/timeslots/1/resourceReference', kind: ownReference, required: true },
      { pointer: '/timeslots/1/start', kind: dateTime },
      { pointer: '/timeslots/1/end', kind: dateTime, required: true },
      { pointer: '/timeslots/1/raster', kind: raster, required: true, accepts: [1, 240] },
      { pointer: '/timeslots/1/defaultCapacity', kind: capacity, required: true, accepts: [0, 1_000_000] },
      { pointer: '/timeslots/1/defaultAcceptBookings', kind: flag, required: true },
      { pointer: '/timeslots/1/bufferBefore', kind: buffer },
      { pointer: '/timeslots/1/bufferAfter', kind: buffer },
      {
        pointer: '/timeslots/1/address',
        kind: {
          ...text,
          refuses: (maxLength) =>
            text.refuses(maxLength).filter((value) => typeof value !== 'object' || Array.isArray(value)),
        },
      },
      ...addressFields('/timeslots/1/address', ['city', 'zip', 'country', 'street', 'number']),
      { pointer: '/timeslots/1/state', kind: oneOf('CREATED', 'BOOKABLE'), required: true },
    ],
  },
  'update timeslot (4.1)': {
    body: () => ({ start: '2031-08-01T09:00', end: '2031-08-01T18:00', defaultCapacity: 3 }),
    send: (body) => crm.put(`${practice.at}/timeslots/${encodeURIComponent(timeslot)}`, body),
    fields: [
      { pointer: '/start', kind: dateTime, nullable: false },
      { pointer: '/end', kind: dateTime, nullable: false },
      { pointer: '/raster', kind: raster, accepts: [15, 30], nullable: false },
      { pointer: '/defaultCapacity', kind: capacity, accepts: [0, 1_000_000], nullable: false },
      { pointer: '/defaultAcceptBookings', kind: flag, nullable: false },
      { pointer: '/bufferBefore', kind: buffer, nullable: false },
      { pointer: '/bufferAfter', kind: buffer, nullable: false },
      { pointer: '/state', kind: oneOf('CREATED', 'BOOKABLE'), nullable: false },
    ],
  },
  'set opening hours (14)': {
    body: () => {
      const address = { city: 'c', zip: 'z', country: 'DE', street: 's', number: '1' };
      return newHours({
        weekly: [newWeeklyWindow({ weekdays: ['7', '6'], address: { ...address } })],
        exceptions: [{ from: '2031-03-03', to: '2031-03-04', windows: [newWindow({ address })], note: 'n' }],
        validUntil: '2031-12-31',
        aheadDays: 1,
      });
    },
    send: (body) => crm.put(hoursAt(practice), body),
    fields: [
      {
        pointer: '/weekly',
        kind: list,
        required: true,
        accepts: [[], Array.from({ length: 50 }, () => newWeeklyWindow())],
        refuses: [Array.from({ length: 51 }, () => ({}))],
      },
      {
        pointer: '/weekly/0/weekdays',
        kind: list,
        required: true,
        refuses: [[], ['1', '2', '1'], ['1', '2', '3', '4', '5', '6', '7', '1']],
      },
      {
        pointer: '/weekly/0/weekdays/0',
        kind: { ...oneOf('1', '2', '3'), refuses: () => [...noText, ' 1', '0', '8', 'Monday', ''] },
        nullable: false,
      },
      ...windowFields('/weekly/0'),
      { pointer: '/exceptions', kind: list, accepts: [[]], refuses: [Array.from({ length: 401 }, () => ({}))] },
      { pointer: '/exceptions/0/from', kind: date, required: true, accepts: ['1900-01-01', '2031-03-04'] },
      { pointer: '/exceptions/0/to', kind: date, required: true, accepts: ['2031-03-03', '9998-12-31'] },
      {
        pointer: '/exceptions/0/windows',
        kind: list,
        required: true,
        accepts: [[], Array.from({ length: 50 }, () => newWindow())],
        refuses: [Array.from({ length: 51 }, () => ({}))],
      },
      ...windowFields('/exceptions/0/windows/0'),
      { pointer: '/exceptions/0/note', kind: text, maxLength: 1_023 },
      { pointer: '/validFrom', kind: date, accepts: ['1900-01-01', ''] },
      { pointer: '/validUntil', kind: date, accepts: ['9998-12-31', ''] },
      { pointer: '/aheadDays', kind: integerOf(1, 400), accepts: [1, 400] },
    ],
  },
  'set opening hours of several resources (14)': {
    body: () => newHours({ resourceReferences: [practice.resource, 'other@test'] }),
    send: (body) => crm.put(`${practice.at}/hours`, body),
    fields: [
      {
        pointer: '/resourceReferences',
        kind: list,
        required: true,
        accepts: [Array.from({ length: 20 }, (_, index) => `room-${index}@test`)],
        refuses: [[], ['r@test', 'r@test'], Array.from({ length: 21 }, (_, index) => `room-${index}@test`)],
      },
      { pointer: '/resourceReferences/0', kind: ownReference, nullable: false, refuses: ['', ' '] },
      { pointer: '/weekly', kind: list, required: true },
      { pointer: '/exceptions', kind: list },
      { pointer: '/validFrom', kind: date },
      { pointer: '/validUntil', kind: date },
      { pointer: '/aheadDays', kind: integerOf(1, 400) },
    ],
  },
  'create block (14)': {
    body: () => newBlock(),
    send: (body) => crm.post(blocksAt({ at: practice.at, resource: 'blocked@test' }), body),
    fields: [
      { pointer: '/reference', kind: ownReference },
      { pointer: '/start', kind: dateTime, required: true, accepts: ['1900-01-01T00:00'] },
      { pointer: '/end', kind: dateTime, required: true, accepts: ['9998-12-31T23:59'] },
      { pointer: '/note', kind: text, maxLength: 1_023 },
    ],
  },
  'create appointment (2.5, 2.6)': {
    body: () =>
      newAppointment(practice, {
        ...details(),
        participations: [
          {
            reference: `${unique('p')}@test`,
            name: 'n',
            email: 'p@test.example',
            mobile: '1',
            note: 'n',
            state: 'BOOKED',
            metadata: newMetadata(),
          },
        ],
      }),
    send: (body) => crm.post(`${practice.at}/appointments`, body),
    fields: [
      { pointer: '/reference', kind: ownReference, required: true },
      { pointer: '/start', kind: dateTime, required: true },
      { pointer: '/end', kind: dateTime, required: true },
      ...detailFields,
      { pointer: '/participations', kind: list },
      { pointer: '/participations/0/reference', kind: ownReference, required: true },
      { pointer: '/participations/0/name', kind: line, required: true },
      { pointer: '/participations/0/email', kind: emailAddress, required: true },
      { pointer: '/participations/0/mobile', kind: line },
      { pointer: '/participations/0/note', kind: text },
      { pointer: '/participations/0/state', kind: participationState, required: true },
      ...metadataFields('/participations/0'),
    ],
  },
  'update appointment (4.2)': {
    body: () => ({
      start: '2031-03-03T09:00',
      end: '2031-03-03T10:00',
      capacity: 1,
      ...changeable(),
      metadata: newMetadata(),
    }),
    send: (body) => crm.put(`${practice.at}/appointments/${encodeURIComponent(changing)}`, body),
    fields: [
      { pointer: '/start', kind: dateTime, nullable: false },
      { pointer: '/end', kind: dateTime, nullable: false },
      ...changeableFields,
      ...metadataFields(''),
    ],
  },
  'create series (4.2)': {
    // Without `series_data` it is a single appointment.
    body: () => ({
      ...newAppointment(practice, details()),
      from: '2031-03-03T09:00',
      to: '2031-03-03T10:00',
      series_data: { from: '2031-03-03T00:00', to: '2031-03-04T23:00', raster: 30, weekdays: ['1', '2'] },
    }),
    send: (body) => crm.post(`${practice.at}/appointments`, body),
    fields: [
      { pointer: '/from', kind: dateTime },
      { pointer: '/to', kind: dateTime },
      { pointer: '/series_data', kind: object },
      { pointer: '/series_data/from', kind: dateTime, required: true },
      { pointer: '/series_data/to', kind: dateTime, required: true },
      { pointer: '/series_data/raster', kind: raster, required: true },
      // The span has more than one day.
      { pointer: '/series_data/weekdays', kind: list, required: true, codeWhenMissing: 'appointment.invalid' },
      {
        pointer: '/series_data/weekdays/0',
        kind: { ...oneOf('1', '2', '3'), refuses: () => [...noText, ' 1', '0', '8', 'Monday', ''] },
        nullable: false,
      },
      ...detailFields,
    ],
  },
  'create participation (4.3)': {
    body: () => ({
      reference: `${unique('p')}@test`,
      appointmentReference: appointment,
      customerReference: practice.customer,
      state: 'BOOKED',
      message: 'm',
      metadata: newMetadata(),
    }),
    send: (body) => crm.post(`${practice.at}/participations`, body, { query: { sendMails: false } }),
    fields: [
      { pointer: '/reference', kind: ownReference, required: true },
      { pointer: '/appointmentReference', kind: { ...line, accepts: () => [] }, required: true },
      { pointer: '/customerReference', kind: { ...line, accepts: () => [] }, required: true },
      { pointer: '/state', kind: participationState, required: true },
      { pointer: '/message', kind: text },
      ...metadataFields(''),
    ],
  },
  'book a slot (10.2)': {
    body: () => ({
      reference: `${unique('b')}@test`,
      timeslotReference: roomyTimeslot,
      start: '2031-03-03T08:00',
      duration: 30,
      productReference: 'roomy@test',
      productName: 'n',
      price: { value: 1, currency: 'EUR' },
      contactReference: member,
      customer: {
        customerReference: `${unique('c')}@test`,
        userName: 'n',
        email: 'c@test.example',
        mobile: '1',
        note: 'n',
        language: 'de',
        metadata: newMetadata(),
      },
      state: 'RESERVED',
      message: 'm',
      metadata: newMetadata(),
    }),
    send: (body) => crm.post(`${practice.at}/bookings`, body, { query: { sendMails: false } }),
    fields: [
      { pointer: '/reference', kind: ownReference, required: true },
      { pointer: '/timeslotReference', kind: { ...line, accepts: () => [] }, required: true },
      { pointer: '/start', kind: dateTime, required: true },
      { pointer: '/duration', kind: raster },
      { pointer: '/productReference', kind: { ...line, accepts: () => [] }, required: true },
      { pointer: '/productName', kind: line },
      { pointer: '/contactReference', kind: reference },
      ...priceFields(''),
      { pointer: '/customer', kind: object },
      { pointer: '/customer/customerReference', kind: ownReference, required: true },
      { pointer: '/customer/userName', kind: line, required: true },
      ...optionalCustomerFields('/customer'),
      { pointer: '/state', kind: oneOf('RESERVED', 'REQUESTED', 'BOOKED'), required: true, refuses: ['CANCELED'] },
      { pointer: '/message', kind: text },
      ...metadataFields(''),
    ],
  },
  'book an open appointment (10.2)': {
    body: () => ({ reference: `${unique('b')}@test`, appointmentReference: openAppointment, state: 'RESERVED' }),
    send: (body) => crm.post(`${practice.at}/bookings`, body, { query: { sendMails: false } }),
    fields: [
      { pointer: '/reference', kind: ownReference, required: true },
      { pointer: '/customerReference', kind: { ...line, accepts: () => [practice.customer] } },
      {
        pointer: '/state',
        kind: { ...oneOf('RESERVED', 'REQUESTED', 'BOOKED'), accepts: () => ['RESERVED'] },
        required: true,
      },
      { pointer: '/message', kind: text },
    ],
  },
  'change a booking (10.3)': {
    body: () => ({
      timeslotReference: roomyTimeslot,
      start: '2031-03-03T08:00',
      duration: 30,
      productReference: 'roomy@test',
      price: { value: 1, currency: 'EUR' },
      message: 'm',
    }),
    send: (body) =>
      crm.post(`${practice.at}/bookings/${encodeURIComponent(booking)}`, body, { query: { sendMails: false } }),
    fields: [
      { pointer: '/timeslotReference', kind: { ...line, accepts: () => [] }, nullable: false, refuses: [''] },
      { pointer: '/start', kind: dateTime, nullable: false },
      { pointer: '/duration', kind: raster },
      { pointer: '/productReference', kind: { ...line, accepts: () => [] } },
      { pointer: '/productName', kind: line },
      { pointer: '/contactReference', kind: reference },
      ...priceFields(''),
      { pointer: '/state', kind: { ...oneOf('BOOKED'), accepts: () => [] }, refuses: ['RESERVED', 'CANCELED'] },
      { pointer: '/message', kind: text },
    ],
  },
  'set booking rules (10.4)': {
    body: () => ({
      offers: [
        {
          productReference: 'p@test',
          name: 'n',
          duration: 30,
          price: { value: 1, currency: 'EUR' },
          resources: [{ resourceReference: 'r@test', name: 'n' }],
        },
      ],
      reminders: [60],
      embedOn: ['https://studio.example'],
    }),
    send: (body) => crm.put(`${ruled.at}/booking-rules`, body),
    fields: [
      { pointer: '/minimumNotice', kind: integerOf(0, 525_600), accepts: [0, 525_600], nullable: false },
      { pointer: '/horizon', kind: integerOf(1, 3_650), accepts: [1, 3_650, null] },
      { pointer: '/changeNotice', kind: integerOf(0, 525_600), accepts: [0, 525_600], nullable: false },
      { pointer: '/confirmation', kind: oneOf('BOOKED', 'REQUESTED'), nullable: false },
      { pointer: '/page', kind: flag, nullable: false },
      {
        pointer: '/reminders',
        kind: list,
        accepts: [[], [1, 2, 3, 4, 525_600]],
        refuses: [[1, 2, 3, 4, 5, 6]],
        nullable: false,
      },
      { pointer: '/reminders/0', kind: integerOf(1, 525_600), nullable: false },
      { pointer: '/notifyProvider', kind: flag, nullable: false },
      { pointer: '/maxPerPerson', kind: integerOf(1, 1_000), accepts: [1, 1_000], nullable: false },
      { pointer: '/selfService', kind: flag },
      { pointer: '/verifyEmail', kind: flag, nullable: false },
      { pointer: '/askMobile', kind: oneOf('NO', 'OPTIONAL', 'REQUIRED'), nullable: false },
      { pointer: '/access', kind: oneOf('PUBLIC', 'INVITED'), nullable: false },
      {
        pointer: '/embedOn',
        kind: list,
        accepts: [[], Array.from({ length: 20 }, (_, index) => `https://studio-${index}.example`)],
        refuses: [Array.from({ length: 21 }, (_, index) => `https://studio-${index}.example`)],
        nullable: false,
      },
      {
        pointer: '/embedOn/0',
        kind: { ...line, accepts: () => ['https://Studio.example:8443/'] },
        nullable: false,
        refuses: [''],
      },
      {
        pointer: '/offers',
        kind: list,
        accepts: [[]],
        refuses: [Array.from({ length: 51 }, () => ({}))],
        nullable: false,
      },
      { pointer: '/offers/0/productReference', kind: reference, required: true },
      { pointer: '/offers/0/name', kind: line, required: true },
      { pointer: '/offers/0/duration', kind: raster, required: true, accepts: [1, 525_600] },
      ...priceFields('/offers/0'),
      { pointer: '/offers/0/resources', kind: list, required: true, refuses: [[]] },
      { pointer: '/offers/0/resources/0/resourceReference', kind: reference, required: true },
      { pointer: '/offers/0/resources/0/name', kind: line, required: true },
    ],
  },
  'update participation (4.3)': {
    body: () => ({ state: 'BOOKED', message: 'm' }),
    send: (body) => crm.post(`${practice.at}/participations/${encodeURIComponent(participation)}`, body),
    fields: [
      { pointer: '/state', kind: { ...participationState, accepts: () => ['BOOKED'] }, required: true },
      { pointer: '/message', kind: text },
    ],
  },
  'note something of a participation (4.3)': {
    body: () => ({ noShow: false, metadata: newMetadata() }),
    send: (body) => crm.post(`${practice.at}/participations/${encodeURIComponent(participation)}`, body),
    fields: [
      // Before the start there is nothing to mark.
      { pointer: '/noShow', kind: { ...flag, accepts: () => [false] }, nullable: false },
      ...metadataFields(''),
    ],
  },
  'create customer (2.7)': {
    body: () => ({
      customerReference: `${unique('c')}@test`,
      providerReference: practice.provider,
      userName: 'n',
      email: 'c@test.example',
      mobile: '1',
      note: 'n',
      language: 'de',
      metadata: newMetadata(),
    }),
    send: (body) => crm.post(`${practice.at}/customers`, body),
    fields: [
      { pointer: '/customerReference', kind: ownReference, required: true },
      { pointer: '/providerReference', kind: { ...line, accepts: () => [] }, required: true, refuses: ['other@test'] },
      { pointer: '/userName', kind: line, required: true },
      ...optionalCustomerFields(''),
    ],
  },
  'update customer (4.4)': {
    body: () => ({
      userName: 'n',
      email: 'c@test.example',
      mobile: '1',
      note: 'n',
      language: 'de',
      metadata: newMetadata(),
    }),
    send: (body) => crm.put(`${practice.at}/customers/${encodeURIComponent(practice.customer)}`, body),
    fields: [
      {
        pointer: '/customerReference',
        kind: { ...line, accepts: () => [] },
        nullable: false,
        refuses: ['', ' ', '.', '..'],
      },
      { pointer: '/userName', kind: line, nullable: false, refuses: ['', ' '] },
      ...optionalCustomerFields(''),
    ],
  },
  'invite a customer (13)': {
    body: () => newInvitation(inviting),
    send: (body) => crm.post(invitationsAt(inviting), body),
    fields: [
      { pointer: '/productReference', kind: { ...line, accepts: () => [] }, required: true },
      { pointer: '/bookings', kind: integerOf(1, 100), required: true, accepts: [1, 100] },
      { pointer: '/expiresAt', kind: dateTime, required: true },
    ],
  },
  'request erasure (4.8)': {
    body: () => ({ email: 'nobody@test.example' }),
    send: (body) => crm.post('/erasures', body),
    fields: [{ pointer: '/email', kind: emailAddress, required: true }],
  },
};

// A field's test may rely on those of the fields before it.
const rows = someOf(Object.entries(operations)).flatMap(([name, operation]) =>
  operation.fields.map((field) => [name, field.pointer, operation, field] as const),
);

describe('each field', () => {
  it.each(rows)(
    '%s: %s',
    async (_name, pointer, operation, { kind, required = false, nullable = !required, ...field }) => {
      const maxLength = field.maxLength ?? kind.maxLength;
      const isText = maxLength > 0;
      const missing = isText ? [null, '', ...(required ? ['   '] : [])] : [null];
      for (const value of [
        ...kind.refuses(maxLength),
        ...(field.refuses ?? []),
        ...(required && !isText ? ['', '   '] : []),
        ...(required || nullable ? [] : [null]),
      ]) {
        await expectRefused(operation, withValue(operation.body(), pointer, value), pointer, value);
      }
      for (const value of required ? [undefined, ...missing] : []) {
        await expectRefused(
          operation,
          withValue(operation.body(), pointer, value),
          pointer,
          value,
          field.codeWhenMissing,
        );
      }
      const accepted = [
        ...kind.accepts(maxLength),
        ...(field.accepts ?? []),
        ...(required || !nullable ? [] : [undefined, ...missing]),
      ];
      for (const value of accepted) await expectAccepted(operation, withValue(operation.body(), pointer, value), value);
    },
  );
});

describe('date-times', () => {
  const withTimes = Object.entries(operations).filter(([, { fields }]) => fields.some(({ kind }) => kind === dateTime));

  it.each(withTimes)('may have the forms of JavaScript and Python: %s', async (_, operation) => {
    for (const end of [':00.000', ':00.999999']) {
      const times = operation.fields.filter(({ kind }) => kind === dateTime);
      const body = times.reduce(
        (rest, { pointer }) => withValue(rest, pointer, `${String(valueAt(rest, pointer))}${end}`),
        operation.body(),
      );
      await expectAccepted(operation, body, end);
    }
  });

  it('may have the forms of JavaScript, Python and PHP in a query', async () => {
    // The lists of the other one are long by now.
    const other = await createPractice(crm);
    const { at, resource } = other;
    const timeslots = [newTimeslot(other)];
    expect((await crm.post(`${at}/timeslots`, { timeslots })).status).toBe(201);
    await createParticipation(other, await createAppointment(other));
    await createBlock(other, { start: '2031-03-03T18:00', end: '2031-03-03T19:00' });
    const ofResource = ['timeslots', 'blocks'].map((kind) => path`/resource/${resource}/${kind}`);
    for (const list of ['/appointments', '/participations', '/slots', ...ofResource]) {
      const local = await crm.get(at + list, { query: { from: '2031-03-03T00:00', to: '2031-03-04T00:00' } });
      expect(local).toMatchObject({ status: 200, body: [expect.anything(), ...(local.body as unknown[]).slice(1)] });
      for (const [from, to] of [
        [new Date('2031-03-02T23:00Z').toISOString(), new Date('2031-03-03T23:00Z').toISOString()],
        ['2031-03-03T00:00:00.999999', '2031-03-04T00:00:00.000001'],
        ['2031-03-03T13:00:00+1400', '2031-03-04T13:00:00+1400'],
        ['2031-03-02T18:30:00.000-0430', '2031-03-03T18:30:00.000-0430'],
      ] as const) {
        expect(await crm.get(at + list, { query: { from, to } })).toMatchObject({
          status: 200,
          text: local.text,
        });
      }
    }
  });

  it('may have these forms for the clock of a sandbox, too', async () => {
    const sandbox = await createCrm({ sandbox: true });
    const now = `${new Date(Date.now() + 3_600_000).toISOString().slice(0, 16)}:30.999+0000`;
    const { status, body } = await sandbox.put<{ clock: { now: string } }>('/sandbox/clock', { now });
    expect(status).toBe(200);
    expect([`${now.slice(0, 19)}Z`, `${now.slice(0, 17)}31Z`]).toContain(body.clock.now);
  });
});

describe('a key of metadata', () => {
  const accepted = ['a', 'A.b_c-9', 'x'.repeat(40), '7', 'constructor', 'toString'];
  const refused = ['', 'x'.repeat(41), 'a b', 'ä', 'a/b', 'a~b', 'a[b]', 'a\nb'];
  const kept = Object.fromEntries(accepted.map((key) => [key, key]));
  const noting = Object.entries(operations).flatMap(([name, operation]) =>
    operation.fields
      .filter(({ pointer }) => pointer.endsWith('/metadata'))
      .map(({ pointer }) => [name, pointer, operation] as const),
  );

  it.each(noting)('is short and made of a few characters: %s: %s', async (_, pointer, operation) => {
    await expectAccepted(operation, withValue(operation.body(), pointer, kept), kept);
    for (const key of refused) {
      const value = { good: '1', [key]: '1' };
      const answer = await operation.send(withValue(operation.body(), pointer, value));
      expect(answer).toMatchObject({ status: 400, body: { code: 'request.invalid' } });
      expect(pointersOf(answer)).toEqual([`${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`]);
    }
  });

  it('is kept as it is, and not a prototype', async () => {
    const send = (body: object) => crm.put<Problem>(`${practice.at}${path`/customers/${practice.customer}`}`, body);
    expect(await send({ metadata: kept })).toMatchObject({ status: 200, body: { customer: { metadata: kept } } });
    const dangerous = JSON.parse('{"metadata":{"__proto__":"1"}}') as object;
    expect(await send(dangerous)).toMatchObject({ status: 400, body: { code: 'request.malformed' } });
  });

  it('is the same in a query', async () => {
    const customers = `${practice.at}/customers`;
    for (const key of accepted)
      expect(await crm.get(customers, { query: { [`metadata[${key}]`]: 'x' } })).toMatchObject({ status: 200 });
    for (const key of [...refused, '__proto__', 'a][b'])
      expect(await faults(customers, { [`metadata[${key}]`]: 'x', 'metadata[good]': '1' })).toEqual([
        `metadata[${key}]`,
      ]);
    expect(await faults(customers, { metadata: 'x', 'metadata[good]': '1' })).toEqual(['metadata']);
    expect(await faults(customers, { 'metadata[good]': '' })).toEqual(['metadata[good]']);
    expect(await faults(customers, { 'metadata[good]': 'x'.repeat(501) })).toEqual(['metadata[good]']);
    expect(await faults(`${customers}?metadata[good]=1&metadata[good]=2`, {})).toEqual(['metadata[good]']);
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`metadata[k${index}]`, 'x']));
    expect(await faults(customers, many)).toEqual(['metadata']);
  });
});

describe('several invalid fields', () => {
  it.each(Object.entries(operations).filter(([, { fields }]) => fields.some(({ required }) => required)))(
    'are all reported: %s',
    async (_, operation) => {
      const required = operation.fields
        .filter((field) => field.required && field.codeWhenMissing === undefined)
        .map(({ pointer }) => pointer);
      const leaves = required.filter((pointer) => !required.some((other) => other.startsWith(`${pointer}/`)));
      // Removed from the end, so that the other indexes stay the same.
      const body = leaves.toReversed().reduce((rest, pointer) => withValue(rest, pointer, null), operation.body());
      const answer = await operation.send(body);
      expect(answer).toMatchObject({ status: 400, body: { code: 'request.invalid' } });
      expect(new Set(pointersOf(answer))).toEqual(new Set(leaves));
    },
  );

  it('are reported together with those of elements and of nested objects', async () => {
    const refused = await crm.post<Problem>('/account', {
      ownerReference: '',
      branch: 'misc',
      invoiceAddress: { city: 5, street: 's' },
      email: 'nobody',
    });
    expect(new Set(pointersOf(refused))).toEqual(
      new Set([
        '/accountReference',
        '/email',
        '/invoiceAddress/city',
        '/invoiceAddress/countryCode',
        '/invoiceAddress/number',
        '/invoiceAddress/zip',
        '/ownerReference',
      ]),
    );
  });
});

describe('lists', () => {
  it('may have 500 elements', async () => {
    const own = await createPractice(crm);
    const timeslots = Array.from({ length: 500 }, () => newTimeslot(own));
    const created = await crm.post<unknown[]>(`${own.at}/timeslots`, { timeslots });
    expect(created.status).toBe(201);
    expect(created.body).toHaveLength(500);
    const participations = Array.from({ length: 500 }, (_, index) => ({
      reference: `${unique('p')}@test`,
      name: `n${index}`,
      email: 'p@test.example',
      state: 'BOOKED',
    }));
    expect(await crm.post(`${own.at}/appointments`, newAppointment(own, { participations }))).toMatchObject({
      status: 201,
    });
    const tooMany = newAppointment(own, {
      participations: [...participations, { ...participations[0], reference: 'more@test' }],
    });
    expect(pointersOf(await crm.post(`${own.at}/appointments`, tooMany))).toEqual(['/participations']);
  });
});

describe('bodies', () => {
  it.each([
    ['no object', '[]', 400, 'request.invalid'],
    ['not JSON', '{', 400, 'request.malformed'],
    ['empty', '', 400, 'request.malformed'],
    ['a prototype', '{"__proto__": {"reference": "x@test"}}', 400, 'request.malformed'],
    ['larger than 1 MiB', JSON.stringify({ reference: 'x'.repeat(1_048_577) }), 413, 'request.too_large'],
  ])('that are %s are rejected', async (_, rawBody, status, code) => {
    expect(await crm.post('/user', undefined, { rawBody })).toMatchObject({ status, body: { code } });
  });

  it.each([
    ['POST', '/user'],
    ['POST', '/user/u@test/verification'],
    ['PUT', '/provider/p@test/timeslots/t@test'],
    ['PUT', '/provider/p@test'],
    ['DELETE', '/user/u@test'],
    ['DELETE', '/provider/p@test/timeslots/t@test'],
    ['DELETE', '/provider/p@test/staff/u@test'],
    ['DELETE', '/provider/p@test/appointments'],
  ])('that are not declared as JSON are rejected by %s %s', async (method, address) => {
    for (const contentType of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml']) {
      expect(
        await crm.send(method, address, undefined, { rawBody: '{}', headers: { 'content-type': contentType } }),
      ).toMatchObject({
        status: 415,
        body: { code: 'request.unsupported_media_type' },
      });
    }
  });

  it('may contain unknown properties', async () => {
    expect(
      await operations['create customer (2.7)']!.send({
        ...operations['create customer (2.7)']!.body(),
        colour: 'blue',
      }),
    ).toMatchObject({ status: 201 });
  });
});

describe('query parameters', () => {
  it('are all checked, and reported as parameters', async () => {
    const appointments = `${practice.at}/appointments`;
    expect(
      await faults(appointments, { includeArchived: 'maybe', from: 'today', to: '2031-02-30T00:00', limit: '0' }),
    ).toEqual(['from', 'includeArchived', 'limit', 'to']);
    expect(await faults(appointments, { limit: '1001' })).toEqual(['limit']);
    expect(await faults(appointments, { limit: '1.5' })).toEqual(['limit']);
    expect(await faults(appointments, { limit: '10', cursor: 'made-up' })).toEqual(['cursor']);
    expect(await faults(appointments, { productRef: 'x'.repeat(256) })).toEqual(['productRef']);
    const customers = `${practice.at}/customers`;
    expect(await faults(customers, { email: 'nobody', q: 'x', limit: '0' })).toEqual(['email', 'limit', 'q']);
    expect(await faults(customers, { email: '', q: '' })).toEqual(['email', 'q']);
    expect(await faults(customers, { limit: '10', cursor: 'made-up' })).toEqual(['cursor']);
    expect(
      await faults(`${practice.at}/participations`, {
        state: 'GONE',
        from: 'x',
        to: 'x',
        changedSince: 'x',
        limit: '0',
      }),
    ).toEqual(['changedSince', 'from', 'limit', 'state', 'to']);
    expect(
      await faults(`${practice.at}/slots`, { from: 'x', to: 'x', duration: '0', ignoreNotice: '2', limit: '0' }),
    ).toEqual(['duration', 'from', 'ignoreNotice', 'limit', 'to']);
    expect(
      await faults(practice.at + path`/resource/${practice.resource}/timeslots`, { from: 'x', limit: 'x' }),
    ).toEqual(['from', 'limit', 'to']);
  });

  it('that are flags must be true or false', async () => {
    for (const parameter of ['ignoreCapacity', 'onDuplicateRaise', 'sendMails']) {
      const body = operations['create participation (4.3)']!.body();
      for (const value of ['yes', '2', 'TRUE', '']) {
        const answer = await crm.post<Problem>(`${practice.at}/participations`, body, {
          query: { [parameter]: value },
        });
        expect(answer).toMatchObject({ status: 400, body: { errors: [{ parameter }] } });
      }
    }
  });

  it('in the path must be references', async () => {
    for (const [address, parameter] of [
      [path`/user/${'x'.repeat(256)}`, 'reference'],
      [path`/user/${'a\u0007b'}`, 'reference'],
      [path`/provider/${'x'.repeat(256)}/staff`, 'providerRef'],
    ] as const) {
      expect(await crm.get(address)).toMatchObject({
        status: 400,
        body: { code: 'request.invalid', errors: [{ parameter }] },
      });
    }
  });
});

async function expectRefused(
  operation: Operation,
  body: Record<string, unknown>,
  pointer: string,
  value: unknown,
  code = 'request.invalid',
): Promise<void> {
  const answer = await operation.send(body);
  const described = `${pointer} = ${describeValue(value)}: ${answer.text.slice(0, 1_000)}`;
  expect(answer.status, described).toBe(400);
  expect(answer.body.code, described).toBe(code);
  expect(pointersOf(answer), described).toEqual([pointer]);
}

async function expectAccepted(operation: Operation, body: Record<string, unknown>, value: unknown): Promise<void> {
  const answer = await operation.send(body);
  expect([200, 201, 202], `${describeValue(value)}: ${answer.text.slice(0, 1_000)}`).toContain(answer.status);
}

/** The parameters that are reported. */
async function faults(address: string, query: Record<string, string>): Promise<string[]> {
  const { status, body } = await crm.get<Problem>(address, { query });
  expect(status).toBe(400);
  return body.errors!.map(({ parameter }) => String(parameter)).sort();
}

function pointersOf({ body }: Answer<Problem>): (string | undefined)[] {
  for (const { detail } of body.errors ?? []) expect(detail).toMatch(/\S/);
  return (body.errors ?? []).map(({ pointer }) => pointer);
}

function describeValue(value: unknown): string {
  return (JSON.stringify(value) ?? 'absent').slice(0, 200);
}

/** A copy of the body with another value at the pointer, or with the value removed. */
function withValue(body: Record<string, unknown>, pointer: string, value: unknown): Record<string, unknown> {
  const copy = structuredClone(body);
  const end = pointer.lastIndexOf('/');
  const parent = valueAt(copy, pointer.slice(0, end)) as Record<string, unknown>;
  parent[pointer.slice(end + 1)] = value;
  return copy;
}

function valueAt(body: Record<string, unknown>, pointer: string): unknown {
  const steps = pointer.split('/').slice(1);
  return steps.reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], body);
}
