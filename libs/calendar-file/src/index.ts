export {
  type CalendarBooking,
  type CalendarMethod,
  type CalendarOrganizer,
  type PublishedBooking,
  writeCalendar,
} from './write-calendar.ts';
