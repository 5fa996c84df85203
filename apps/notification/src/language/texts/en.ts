import type { Texts } from '../texts.ts';

export const texts: Texts = {
  greeting: (name) => `Hello ${name},`,
  mails: {
    'booking-confirmed': {
      subject: (about, when) => `Your booking: ${when} – ${about}`,
      status: 'Confirmed',
      headline: 'Your booking is confirmed',
      lead: 'We look forward to seeing you.',
    },
    'request-received': {
      subject: (about, when) => `Your request: ${when} – ${about}`,
      status: 'Request received',
      headline: 'We have your request',
      lead: 'It is not a booking yet. We will let you know as soon as it has been decided.',
    },
    'request-confirmed': {
      subject: (about, when) => `Confirmed: ${when} – ${about}`,
      status: 'Confirmed',
      headline: 'Your request is confirmed',
      lead: 'Your place is booked. We look forward to seeing you.',
    },
    'request-declined': {
      subject: (about, when) => `Declined: ${when} – ${about}`,
      status: 'Declined',
      headline: 'Your request was declined',
      lead: 'Unfortunately we cannot offer you this appointment.',
    },
    'request-withdrawn': {
      subject: (about, when) => `Request cancelled: ${when} – ${about}`,
      status: 'Request cancelled',
      headline: 'You have cancelled your request',
      lead: 'You do not need to do anything else.',
    },
    'booking-moved': {
      subject: (about, when) => `New time: ${when} – ${about}`,
      status: 'Moved',
      headline: 'Your booking has been moved',
      lead: 'Here are the new time and place. They replace what we sent you before.',
    },
    'appointment-changed': {
      subject: (about, when) => `Changed: ${when} – ${about}`,
      status: 'Changed',
      headline: 'Your appointment has changed',
      lead: 'Here are the new time and place. They replace what we sent you before.',
    },
    'request-changed': {
      subject: (about, when) => `Request changed: ${when} – ${about}`,
      status: 'Request changed',
      headline: 'Your request has changed',
      lead: 'Here is what it is for now. It is not a booking yet. We will let you know as soon as it has been decided.',
    },
    'booking-cancelled': {
      subject: (about, when) => `Cancelled: ${when} – ${about}`,
      status: 'Cancelled',
      headline: 'Your booking is cancelled',
      lead: 'You do not need to do anything else.',
    },
    'appointment-cancelled': {
      subject: (about, when) => `Cancelled: ${when} – ${about}`,
      status: 'Cancelled',
      headline: 'This appointment will not take place',
      lead: 'Unfortunately it had to be cancelled.',
    },
    'booking-reminder': {
      subject: (about, when) => `Reminder: ${when} – ${about}`,
      status: 'Reminder',
      headline: 'Your appointment is coming up',
      lead: 'Here are the time and place once more. We look forward to seeing you.',
    },
    'request-unconfirmed': {
      subject: (about, when) => `Not confirmed yet: ${when} – ${about}`,
      status: 'Not confirmed yet',
      headline: 'Your request has not been confirmed yet',
      lead: 'You do not have a place yet, so please do not come unless you hear that it is confirmed.',
    },
    'provider-booked': {
      subject: (about, when) => `New booking: ${when} – ${about}`,
      status: 'New booking',
      headline: 'You have a new booking',
      lead: 'It is confirmed, and the place is taken.',
    },
    'provider-requested': {
      subject: (about, when) => `New request: ${when} – ${about}`,
      status: 'New request',
      headline: 'You have a new request',
      lead: 'It is waiting for you to confirm or decline it. Until you confirm it, no place is taken.',
    },
    'provider-moved': {
      subject: (about, when) => `Moved: ${when} – ${about}`,
      status: 'Moved',
      headline: 'A booking has been moved',
      lead: 'Here are its new time and place. The earlier place is free again.',
    },
    'provider-request-moved': {
      subject: (about, when) => `Request moved: ${when} – ${about}`,
      status: 'Request moved',
      headline: 'A request has been moved',
      lead: 'Here is what it is for now. It is still waiting for you to confirm or decline it.',
    },
    'provider-cancelled': {
      subject: (about, when) => `Cancelled: ${when} – ${about}`,
      status: 'Cancelled',
      headline: 'A booking has been cancelled',
      lead: 'The place is free again.',
    },
    'provider-request-withdrawn': {
      subject: (about, when) => `Request cancelled: ${when} – ${about}`,
      status: 'Request cancelled',
      headline: 'A request has been cancelled',
      lead: 'There is nothing left to decide.',
    },
    'provider-request-waiting': {
      subject: (about, when) => `Still waiting: ${when} – ${about}`,
      status: 'Still waiting',
      headline: 'A request is waiting for your answer',
      lead: 'Nobody has confirmed or declined it yet. Until you confirm it, no place is taken.',
    },
    'provider-appointment-changed': {
      subject: (about, when) => `Appointment changed: ${when} – ${about}`,
      status: 'Appointment changed',
      headline: 'An appointment has changed',
      lead: 'Here are its new details. Customers with an email address are told as well.',
    },
    'provider-appointment-cancelled': {
      subject: (about, when) => `Appointment cancelled: ${when} – ${about}`,
      status: 'Appointment cancelled',
      headline: 'An appointment has been cancelled',
      lead: 'It will not take place. Customers with an email address are told as well.',
    },
    'provider-list': {
      subject: (about) => `More bookings and changes: ${about}`,
      status: 'Summary',
      headline: 'More bookings and changes',
      lead: 'So much happened within an hour that the rest is in this one email, in the order of the appointments.',
    },
    'provider-day': {
      subject: (about, when) => `Today, ${when} – ${about}`,
      status: 'Today',
      headline: 'Your appointments today',
      lead: 'Here are all appointments of the day, and everyone who has booked so far.',
    },
    'removed-by-deletion': {
      subject: (about, when) => `Your data was deleted: ${about}, ${when}`,
      status: 'Deleted',
      headline: 'Your customer data was deleted',
      lead: 'You no longer take part in this appointment. This is the last message about it.',
    },
    'booking-verification': {
      subject: (about, when) => `Please confirm: ${when} – ${about}`,
      status: 'Not booked yet',
      headline: 'Please confirm your booking',
      lead: 'Nothing is booked yet. The place is not kept for you: until you confirm, others can book it.',
    },
    'booking-limit': {
      subject: (about, when) => `Not booked: ${when} – ${about}`,
      status: 'Not booked',
      headline: 'This booking was not made',
      lead: 'You already have upcoming bookings, and more are not possible.',
    },
    'email-verification': {
      subject: (about) => `Please confirm your email address for ${about}`,
      status: 'One more step',
      headline: 'Please confirm your email address',
      lead: 'A user account uses this email address. Please confirm that it is yours.',
    },
  },
  labels: {
    where: 'Where',
    price: 'Price',
    reference: 'Reference',
    message: (provider) => `Message from ${provider}`,
    ownMessage: (provider) => `Your message to ${provider}`,
  },
  changes: {
    subjects: {
      time: (about, when) => `New time: ${when} – ${about}`,
      place: (about, when) => `New place: ${when} – ${about}`,
    },
    leads: {
      time: 'The time has changed.',
      place: 'The place has changed.',
      timeAndPlace: 'The time and the place have changed.',
      title: 'Only the title has changed. The time and the place are the same as before.',
      nothing: 'The time and the place are the same as in our last message.',
    },
    stillRequested: 'It is not a booking yet. We will let you know as soon as it has been decided.',
    previously: 'Previously',
  },
  cancelled: {
    booking: (crm) =>
      `The cancellation ${crm === undefined ? '' : `was made through ${crm} and `}affects only this booking.`,
    appointment: (crm) =>
      `The cancellation ${crm === undefined ? '' : `was made through ${crm} and `}applies to everyone taking part.`,
    byYourself: 'You have cancelled this booking.',
  },
  link: {
    booking: {
      view: 'Your booking',
      cancel: 'Cancel',
      change: 'Move or cancel',
      until: (time) => `Possible until ${time}.`,
    },
    request: {
      view: 'Your request',
      cancel: 'Cancel',
      change: 'Move or cancel',
      until: (time) => `You can cancel the request until ${time}.`,
    },
    attend: 'I will be there',
    again: 'Book another time',
  },
  contact: {
    later: (whom) => `After that, please contact ${whom}`,
    laterOrToMove: (whom) => `After that, or to move to another time, please contact ${whom}`,
    toChange: (whom) => `To move or cancel, please contact ${whom}`,
    again: (whom) => `To book another time, or if you have any questions, please contact ${whom}`,
    againOrReply: (whom) =>
      `To book another time, or if you have any questions, just reply to this email or contact ${whom}`,
    toBeAnswered: (whom) => `If you would like to know sooner, please contact ${whom}`,
    questions: (whom) => `If you have any questions, please contact ${whom}`,
    byLines: (name) => `${name}:`,
    directly: (name) => `${name} directly.`,
    imprint: 'Their legal notice is at the end of this email.',
  },
  calendar: {
    invitation: 'The attached file adds the appointment to your calendar.',
    update: 'The attached file updates your calendar.',
    cancellation: 'The attached file removes the appointment from your calendar.',
    declining: 'Declining the invitation in your calendar does not cancel the booking.',
  },
  provider: {
    labels: {
      name: 'Customer',
      phone: 'Phone',
      email: 'Email',
      note: 'Note',
      message: (person) => `Message from ${person}`,
      messageToPerson: 'Message to the customer',
    },
    decide: 'Confirm or decline',
    decideUntil: (start) => `Possible until the start, ${start}. The link is for you only.`,
    byPerson: 'The customer did this using the link in their email.',
    onPage: 'The customer did this on the booking page.',
    throughCrm: (crm) => `This was done through ${crm}.`,
    day: {
      bookings: (booked, requested) => {
        const bookings = booked === 0 ? 'no bookings' : `${booked} ${booked === 1 ? 'booking' : 'bookings'}`;
        return requested === 0 ? bookings : `${bookings}, ${requested} ${requested === 1 ? 'request' : 'requests'}`;
      },
      noBookings: 'No bookings',
      requested: 'request',
      nobody: 'Name removed',
    },
    unlisted: (count) => `${count} more are in your calendar only.`,
    reason: (provider, crm) =>
      `You receive these emails because ${provider} is told about its bookings. ${crm} can turn them off.`,
  },
  verification: {
    labels: { crm: 'Account with', name: 'Name', email: 'Email address' },
    purpose: (crm) => `${crm} wants to be sure that messages about the account reach the right person.`,
    action: 'Confirm email address',
    expiry: 'The link is valid for 24 hours and can be used once.',
    unexpected: 'Don’t recognise this account? You can ignore this email: nothing happens unless you confirm.',
  },
  page: {
    requests: {
      'booking-verification': {
        subject: (about, when) => `Please confirm: ${when} – ${about}`,
        status: 'Not requested yet',
        headline: 'Please confirm your request',
        lead: 'Nothing is booked or requested yet, and no place is kept for you. Once you confirm, we will let you know as soon as your request has been decided.',
      },
      'booking-limit': {
        subject: (about, when) => `Not requested: ${when} – ${about}`,
        status: 'Not requested',
        headline: 'This request was not made',
        lead: 'You already have upcoming bookings, and more are not possible.',
      },
    },
    confirm: { booking: 'Confirm booking', request: 'Confirm request' },
    until: (time) => `The link works until ${time}.`,
    unexpected: (provider) =>
      `Somebody entered this address on the booking page of ${provider}. If that was not you, you do not need to do anything.`,
    limit: (bookings, provider) =>
      `On the booking page of ${provider}, one person can have ${bookings} upcoming ${bookings === 1 ? 'booking' : 'bookings'}, including requests.`,
    cancelOne: (whom) =>
      `To make it all the same, first cancel another one by the link in its email, or contact ${whom}`,
  },
  fallback: 'If the button does not work, open this address in your browser:',
  automatic: 'This message was sent automatically.',
  noReply: (name) => `Please do not reply to it: replies do not reach ${name}.`,
};
