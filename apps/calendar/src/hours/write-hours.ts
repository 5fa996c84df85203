import type { Hours, HoursWindow, Location } from '../db/schema.ts';

/** The hours of a resource as an object of the REST interface, as JSON. */
export function writeHours(resourceReference: string, hours: Hours, madeUntil: string): string {
  const { weekly, exceptions, validFrom, validUntil, aheadDays } = hours;
  return JSON.stringify({
    resourceReference,
    weekly: weekly.map(({ weekdays, ...window }) => ({ weekdays, ...presentWindow(window) })),
    exceptions: exceptions.map(({ from, to, windows, note }) => ({
      from,
      to,
      windows: windows.map(presentWindow),
      note,
    })),
    validFrom,
    validUntil,
    aheadDays,
    madeUntil,
  });
}

function presentWindow(window: HoursWindow) {
  const {
    from,
    to,
    raster,
    defaultCapacity,
    defaultAcceptBookings,
    address,
    bufferBefore = 0,
    bufferAfter = 0,
  } = window;
  return {
    from,
    to,
    raster,
    defaultCapacity,
    defaultAcceptBookings,
    address: presentLocation(address),
    bufferBefore,
    bufferAfter,
  };
}

/** All fields of an address, as location_json does it. */
export function presentLocation(address: Location | null) {
  if (address === null || typeof address === 'string') return address;
  const { city = null, countryCode = null, street = null, number = null, zip = null } = address;
  return { city, countryCode, street, number, zip };
}
