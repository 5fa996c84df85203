import { AppointmentState, type Price } from '@scheduling/contracts/calendar/v1';
import { enumNames } from '@scheduling/rpc';
import { Type } from 'typebox';
import { oneOf } from '../fields.ts';
import { metadata } from '../metadata.ts';
import { instant, nullable, nullableString } from '../schemas.ts';
import { address } from './locations.ts';
import { participation, participationExample } from './participations.ts';

export const price = nullable<Price>({
  title: 'Price',
  type: 'object',
  required: ['value', 'currency'],
  properties: { value: { type: 'number' }, currency: { type: 'string', enum: ['EUR', 'CHF'] } },
});

export const appointmentStates = enumNames(AppointmentState);

export const appointmentExample = {
  reference: 'a-1@acme',
  acceptBookings: true,
  address: { city: 'Berlin', countryCode: 'DE', street: 'Beispielstraße', number: '1', zip: '10115' },
  archived: false,
  capacity: 2,
  contactReference: null,
  description: 'Haircut',
  start: '2030-05-06T07:00:00Z',
  end: '2030-05-06T07:30:00Z',
  notes: null,
  metadata: { room: '2' },
  participations: [participationExample],
  price: { value: 49.9, currency: 'EUR' },
  productReference: 'haircut@acme',
  resourceReference: 'room-1@acme',
  seriesId: null,
  state: 'ACTIVE',
};

/** interface 2.5. */
export const appointment = Type.Object(
  {
    reference: Type.String(),
    acceptBookings: Type.Boolean({ description: 'Whether it is publicly bookable.' }),
    address,
    archived: Type.Boolean(),
    capacity: Type.Integer({ description: 'Maximum number of participants.' }),
    contactReference: nullableString({ description: 'Reference of the responsible user.' }),
    description: nullableString(),
    start: instant(),
    end: instant(),
    notes: nullableString(),
    metadata,
    participations: Type.Array(participation),
    price,
    productReference: Type.String(),
    resourceReference: Type.String(),
    seriesId: nullableString({ description: 'Set for appointments of a series.' }),
    state: oneOf(appointmentStates),
  },
  { title: 'Appointment', examples: [appointmentExample] },
);
