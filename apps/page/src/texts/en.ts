import type { Texts } from './texts.ts';

export const texts: Texts = {
  sandbox: 'Test: this is not a real booking',
  situations: {
    reserved: { title: 'Held for you', text: 'You do not need to do anything here. The booking is not complete yet.' },
    requested: {
      title: 'Your request',
      text: 'It is not a booking yet. We will let you know as soon as it has been decided.',
    },
    lapsed: { title: 'Not confirmed', text: 'Your request was not confirmed in time.' },
    booked: { title: 'Your booking is confirmed', text: 'We look forward to seeing you.' },
    over: { title: 'Your booking', text: 'This appointment is over.' },
    cancelled: { title: 'Cancelled', text: 'You do not need to do anything else.' },
  },
  heldUntil: (moment) => `Held until ${moment}.`,
  labels: {
    what: 'What',
    when: 'When',
    where: 'Where',
    provider: 'With',
    price: 'Price',
    name: 'Name',
    email: 'Email address',
    changes: 'Changes',
    from: 'Current time',
    to: 'New time',
    newTitle: 'New title',
    newPlace: 'New place',
  },
  deadlines: {
    both: (moment) => `You can move or cancel it until ${moment}.`,
    cancel: (moment) => `You can cancel it until ${moment}.`,
    move: (moment) => `You can move it until ${moment}.`,
  },
  attendance: 'You have said that you will be there.',
  buttons: {
    move: 'Move',
    cancel: 'Cancel',
    attend: 'I will be there',
    calendar: 'Add to my calendar',
  },
  tooLate: 'It is too late to move or cancel this booking here.',
  ask: (provider) => `Please contact ${provider}`,
  done: {
    cancelled: 'The cancellation is complete.',
    attending: 'Thank you. We have noted that you will be there.',
    moved: {
      booking: 'Your booking has been moved. The new time is below.',
      request: 'Your request has been moved. The new time is below.',
    },
  },
  cancel: {
    booking: {
      title: 'Cancel this booking?',
      text: 'Only this booking will be cancelled. This cannot be undone.',
      button: 'Cancel the booking',
      back: 'Keep the booking',
    },
    request: {
      title: 'Cancel this request?',
      text: 'Only this request will be cancelled. This cannot be undone.',
      button: 'Cancel the request',
      back: 'Keep the request',
    },
    message: (provider) => `Message to ${provider} (optional)`,
    hint: 'At most 500 characters.',
  },
  attend: {
    title: 'Will you be there?',
    text: (provider) => `This tells ${provider} that you will be there. It changes nothing else.`,
    button: 'I will be there',
    back: 'Back to the booking',
  },
  move: {
    title: 'Choose another time',
    request: 'Your request has to be confirmed for the new time, too.',
    zone: (zone) => `All times are in ${zone}.`,
    none: { title: 'No time available', text: 'There is no time available at present.' },
    emptyWeek: 'There is no time available in this week.',
    previous: 'Previous week',
    next: 'Next week',
    weeks: 'Weeks',
    back: 'Back without changes',
  },
  confirm: {
    booking: { title: 'Move this booking?', button: 'Move the booking', back: 'Choose another time' },
    request: { title: 'Move this request?', button: 'Move the request', back: 'Choose another time' },
  },
  taken: {
    title: 'No longer available',
    text: 'This time is no longer available. Nothing was changed.',
    back: 'See other times',
  },
  obstacles: {
    cancel: {
      cancelled: { title: 'Already cancelled', text: 'You do not need to do anything else.' },
      tooLate: {
        title: 'Too late to cancel here',
        text: 'You can no longer cancel here.',
      },
      notOffered: {
        title: 'Not possible here',
        text: 'You cannot cancel here.',
      },
    },
    move: {
      cancelled: { title: 'Already cancelled', text: 'What is cancelled can no longer be moved.' },
      tooLate: {
        title: 'Too late to move here',
        text: 'You can no longer move to another time here.',
      },
      notOffered: {
        title: 'Not possible here',
        text: 'You cannot move to another time here.',
      },
    },
    attend: {
      cancelled: { title: 'Already cancelled', text: 'This booking is cancelled.' },
      tooLate: { title: 'No longer needed', text: 'This appointment has started or is over.' },
      notOffered: {
        title: 'Not possible here',
        text: 'This is only possible for a confirmed booking.',
      },
    },
  },
  error: 'Error',
  invalidMessage: { title: 'Please check your message', text: 'The message may have at most 500 characters.' },
  changed: {
    title: 'The time has been changed in the meantime',
    text: 'Please check the new time.',
  },
  decide: {
    stages: {
      waiting: { title: 'Confirm this request?', text: 'The customer gets an email with your decision.' },
      lapsed: {
        title: 'Not decided in time',
        text: 'This request was not decided before the start. It can no longer be decided here.',
      },
      confirmed: { title: 'Confirmed', text: 'This request has been confirmed.' },
      declined: { title: 'Declined', text: 'This request has been declined.' },
      booked: { title: 'Confirmed', text: 'This request has been confirmed, not by one of these links.' },
      cancelled: { title: 'Cancelled', text: 'This request or booking has been cancelled.' },
    },
    confirmedBy: (name, moment) => `Confirmed${name === undefined ? '' : ` by ${name}`} on ${moment}.`,
    declinedBy: (name, moment) => `Declined${name === undefined ? '' : ` by ${name}`} on ${moment}.`,
    labels: { person: 'Customer', message: 'Message', note: 'Note', places: 'Places', others: 'Other requests' },
    places: (free, all) => `${free} of ${all} free`,
    others: (count) =>
      count === 1 ? 'One more request for this time is waiting.' : `${count} more requests for this time are waiting.`,
    form: {
      message: 'Message to the customer (optional)',
      hint: 'At most 500 characters.',
      confirm: 'Confirm',
      decline: 'Decline',
    },
    errors: {
      invalidMessage: { title: 'Please check your message', text: 'The message may have at most 500 characters.' },
      changed: { title: 'The appointment has been changed in the meantime', text: 'Please check the new details.' },
      full: {
        title: 'No place is free any more',
        text: 'Nothing was changed. You can decline the request here, or overbook the appointment in your own software.',
      },
      decided: { title: 'Your decision came too late', text: 'Nothing was changed by it.' },
      noDecision: { title: 'Nothing was decided', text: 'Please choose one of the two buttons.' },
    },
  },
  backToBooking: 'Back to the booking',
  footer: {
    through: (crm) => `Booked through ${crm}`,
    legal: 'Legal notice',
    purpose: 'We use your data to arrange this appointment.',
    privacy: 'Privacy notice',
  },
  thisLanguage: 'English',
  failures: {
    deadLink: {
      title: 'This link does not work',
      text: 'It is not valid, or no longer valid. Please use the link in the latest email.',
    },
    unknownAddress: { title: 'Page not found', text: 'There is no page at this address. Please check its spelling.' },
    unavailable: {
      title: 'Temporarily unavailable',
      text: 'This page is not available at the moment. Please try again in a few minutes.',
    },
    tooMany: { title: 'Too many pages', text: 'Too many pages were opened. Please try again in a minute.' },
    foreignForm: {
      title: 'Nothing was changed',
      text: 'This form did not come from our own page. Open the link in your email and try again.',
    },
    invalid: {
      title: 'Nothing was changed',
      text: 'This form could not be read. Open the link in your email and try again.',
    },
    internal: { title: 'Something went wrong', text: 'The error is on our side. Please try again later.' },
  },
  calendar: (url) => `Your booking: ${url}`,
};
