import { Type } from 'typebox';
import { capacityRange, integer, optionalInteger, rasterRange } from '../fields.ts';
import { address, addressInput } from './locations.ts';

/** What timeslots and the windows of opening hours have in common (interface 2.4). */

const bufferRange = { minimum: 0, maximum: 1_440 };

const texts = {
  raster: 'Length of one bookable slot in minutes.',
  defaultCapacity: 'Maximum number of participants of appointments created from it.',
  defaultAcceptBookings: 'Whether it is publicly bookable.',
  bufferBefore:
    'How many minutes at least are between an appointment that is booked in it and the previous one of the resource. The larger of two buffers counts.',
  bufferAfter:
    'How many minutes at least are between an appointment that is booked in it and the next one of the resource. The larger of two buffers counts.',
};

const requiredInput = {
  raster: integer({ ...rasterRange, description: texts.raster }),
  defaultCapacity: integer({ ...capacityRange, description: texts.defaultCapacity }),
  defaultAcceptBookings: Type.Boolean({ description: texts.defaultAcceptBookings }),
};

/** Those of a request that makes one. */
export const newTimeslotFields = {
  ...requiredInput,
  address: Type.Optional(addressInput),
  bufferBefore: Type.Optional(optionalInteger({ ...bufferRange, description: `${texts.bufferBefore} Defaults to 0.` })),
  bufferAfter: Type.Optional(optionalInteger({ ...bufferRange, description: `${texts.bufferAfter} Defaults to 0.` })),
};

/** Those that a request can change. */
export const changedTimeslotFields = {
  raster: Type.Optional(requiredInput.raster),
  defaultCapacity: Type.Optional(requiredInput.defaultCapacity),
  defaultAcceptBookings: Type.Optional(requiredInput.defaultAcceptBookings),
  bufferBefore: Type.Optional(integer({ ...bufferRange, description: texts.bufferBefore })),
  bufferAfter: Type.Optional(integer({ ...bufferRange, description: texts.bufferAfter })),
};

/** As they are returned. */
export const timeslotFields = {
  raster: Type.Integer({ description: texts.raster }),
  defaultCapacity: Type.Integer({ description: texts.defaultCapacity }),
  defaultAcceptBookings: Type.Boolean({ description: texts.defaultAcceptBookings }),
  address,
  bufferBefore: Type.Integer({ description: texts.bufferBefore }),
  bufferAfter: Type.Integer({ description: texts.bufferAfter }),
};
