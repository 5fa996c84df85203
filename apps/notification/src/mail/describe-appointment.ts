import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Provider } from '@scheduling/contracts/identity/v1';
import { formatPeriod, linesOfLocation, type Period, titleOf, webAddressOf } from '@scheduling/presentation';

/** An appointment as mails show it. */
export interface AppointmentView {
  title: string;
  period: Period;
  where: string[];
  /** Set when the place is the URL of a page, such as a video call. */
  link?: string | undefined;
  details: Detail[];
  /** What was different before. */
  earlier?: Earlier | undefined;
}

export interface Detail {
  label: string;
  value: string;
  /** Of the value: a number to call, or an address to write to. */
  link?: string | undefined;
}

/** What the person was told before, as far as it is different. Without links: nobody should join what is gone. */
export interface Earlier {
  label: string;
  title?: string | undefined;
  period?: string | undefined;
  where?: string | undefined;
}

/** Of an appointment, as calendar sends it: start and end are always there. */
export type AppointmentFacts = Pick<GetParticipationMailDataResponse, 'description' | 'start' | 'end' | 'address'>;

export function describeAppointment(
  appointment: AppointmentFacts,
  provider: Provider,
  locale: string,
  { details = [], earlier }: Pick<Partial<AppointmentView>, 'details' | 'earlier'> = {},
): AppointmentView {
  const where = linesOfLocation(appointment.address, locale);
  return {
    title: titleOf(appointment, provider),
    period: formatPeriod(appointment.start!, appointment.end!, provider.timeZone, locale),
    where,
    link: webAddressOf(where),
    details,
    earlier,
  };
}
