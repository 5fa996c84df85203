import type { Texts } from './texts.ts';

export const texts: Texts = {
  sandbox: 'Test: this is not a real booking',
  situations: {
    reserved: { title: 'Held for you', text: 'There is nothing for you to do here. The booking is not complete yet.' },
    requested: {
      title: 'Your request',
      text: 'It is not a booking yet. You will get a message as soon as it is decided.',
    },
    lapsed: { title: 'Not confirmed', text: 'Your request was not confirmed before this time.' },
    booked: { title: 'Your booking is confirmed', text: 'We look forward to seeing you.' },
    over: { title: 'Your booking', text: 'This appointment is over.' },
    cancelled: { title: 'Cancelled', text: 'This booking is cancelled. There is nothing left to do.' },
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
    from: 'Until now',
    to: 'New',
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
    calendar: 'Save in my calendar',
  },
  contact: 'Please get in touch directly:',
  tooLate: 'It is too late to change this booking here.',
  done: {
    cancelled: 'The booking is now cancelled.',
    attending: 'Thank you. It is noted that you will be there.',
    moved: 'The booking is now at the time below.',
  },
  cancel: {
    title: 'Cancel this booking?',
    text: 'Only this booking is cancelled. This cannot be undone.',
    message: (provider) => `Message to ${provider} (optional)`,
    hint: 'At most 500 characters.',
    button: 'Cancel the booking',
    back: 'Keep the booking',
  },
  attend: {
    title: 'Will you be there?',
    text: (provider) => `With this you tell ${provider} that you will come. It changes nothing else.`,
    button: 'I will be there',
    back: 'Back to the booking',
  },
  move: {
    title: 'Choose another time',
    request: 'Your request stays a request.',
    zone: (zone) => `All times are in ${zone}.`,
    none: { title: 'No free time', text: 'At present there is no free time.' },
    emptyWeek: 'There is no free time in this week.',
    previous: 'Previous week',
    next: 'Next week',
    weeks: 'Weeks',
    back: 'Back without a change',
  },
  confirm: { title: 'Move the booking?', button: 'Move the booking', back: 'Choose another time' },
  taken: {
    title: 'No longer free',
    text: 'This time has just been taken. Your booking has not changed.',
    back: 'See other times',
  },
  obstacles: {
    cancel: {
      cancelled: { title: 'Already cancelled', text: 'This booking is cancelled. There is nothing left to do.' },
      tooLate: {
        title: 'Too late to cancel here',
        text: 'This booking can no longer be cancelled here.',
      },
      notOffered: {
        title: 'Not possible here',
        text: 'This booking cannot be cancelled here.',
      },
    },
    move: {
      cancelled: { title: 'Already cancelled', text: 'This booking is cancelled and can no longer be moved.' },
      tooLate: {
        title: 'Too late to move it here',
        text: 'This booking can no longer be moved here.',
      },
      notOffered: {
        title: 'Not possible here',
        text: 'This booking cannot be moved here.',
      },
    },
    attend: {
      cancelled: { title: 'Already cancelled', text: 'This booking is cancelled.' },
      tooLate: { title: 'Not needed any more', text: 'This appointment has begun, or is over.' },
      notOffered: {
        title: 'Not possible here',
        text: 'You cannot do this for this booking.',
      },
    },
  },
  error: 'Error',
  invalidForm: { title: 'Please check your message', message: 'The message may have at most 500 characters.' },
  backToBooking: 'Back to the booking',
  footer: {
    legal: 'Legal notice',
    purpose: 'We use your data to arrange this appointment.',
    privacy: 'Privacy notice',
  },
  thisLanguage: 'English',
  failures: {
    deadLink: {
      title: 'This link does not work',
      text: 'This link does not work, or no longer. Use the newest mail.',
    },
    unknownAddress: { title: 'Page not found', text: 'There is no page at this address. Check its spelling.' },
    unavailable: {
      title: 'Temporarily unavailable',
      text: 'This page is not available at the moment. Please try again in a few minutes.',
    },
    tooMany: { title: 'Too many pages', text: 'Too many pages were opened. Please try again in a minute.' },
    foreignForm: {
      title: 'Nothing was changed',
      text: 'This form did not come from our own page. Open the link in your mail and try again.',
    },
    invalid: {
      title: 'Nothing was changed',
      text: 'This form could not be read. Open the link in your mail and try again.',
    },
    internal: { title: 'Something went wrong', text: 'The error is on our side. Please try again later.' },
  },
  calendar: (url) => `See, move or cancel the booking: ${url}`,
};
