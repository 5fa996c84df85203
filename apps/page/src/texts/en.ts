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
    message: 'Message',
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
  book: {
    offers: {
      title: 'Book an appointment',
      none: { title: 'No online booking at present', text: 'At the moment, nothing can be booked on this page.' },
      gone: { title: 'This offer is no longer available', text: 'Please choose another one.' },
      message: 'Your message, to copy',
    },
    week: {
      title: (offer) => `Choose a time: ${offer}`,
      people: 'With whom?',
      anyone: 'Anyone',
      secondZone: (zone) => `In small print: ${zone}.`,
      next: (day) => `Next available time: ${day}`,
      allOffers: 'All offers',
    },
    taken: {
      title: 'This time is no longer available',
      text: 'Please choose another one.',
      kept: 'Everything you have typed is still here. Choose another time to book it.',
      noneNear: 'There is no other time near it.',
      freeAgain: 'It has just become available again. Please send the form once more, or choose another time.',
      nearest: 'Nearest available times',
    },
    form: {
      title: 'Your details',
      isHeld: (time) =>
        `Held for you until ${time}. You may take longer: you can still book it then, unless somebody else has.`,
      notHeld: 'This time is not held for you: somebody else may book it before you do.',
      needsConfirmation: 'This is a request. It becomes a booking once it has been confirmed.',
      otherTime: 'Choose another time',
      allTimes: 'See all times',
      labels: { name: 'Name', email: 'Email address', mobile: 'Mobile number' },
      optional: (label) => `${label} (optional)`,
      book: 'Book',
      request: 'Send request',
      bookAt: (time) => `Book ${time}`,
      requestAt: (time) => `Request ${time}`,
      invalid: 'Please check your details',
      changed: {
        title: 'The price has changed in the meantime',
        text: (price) =>
          price === undefined
            ? 'There is no price any more. Please check the details before you send them again.'
            : `It is ${price} now. Please check the details before you send them again.`,
      },
      problems: {
        name: {
          missing: 'Enter your name',
          tooLong: 'The name may have at most 60 characters',
          malformed: 'Enter your name, without web addresses',
        },
        email: {
          missing: 'Enter your email address',
          tooLong: 'The email address may have at most 254 characters',
          malformed: 'Enter an email address in the correct format, like name@example.com',
        },
        mobile: {
          missing: 'Enter your mobile number',
          tooLong: 'The mobile number may have at most 255 characters',
          malformed: 'Enter a mobile number, like +44 7700 900123',
        },
        message: {
          missing: 'Enter a message',
          tooLong: 'The message may have at most 500 characters',
          malformed: 'Enter a message without special characters',
        },
      },
    },
    done: {
      booked: { title: 'Booked', text: 'We look forward to seeing you.' },
      requested: {
        title: 'Request sent',
        text: 'It is not a booking yet. We will let you know as soon as it has been decided.',
      },
      mail: (address) => `We have sent an email to ${address}.`,
      change: 'See, move or cancel (opens in a new tab)',
      calendar: 'Add to my calendar (opens in a new tab)',
      over: {
        title: 'This page is no longer available',
        text: 'If you have booked, all details are in the email that we have sent you.',
      },
      again: 'Back to the booking page',
      another: 'Book another appointment',
    },
    sent: {
      title: 'This form has already been sent',
      text: 'All details are in the email to the address in it. Nothing else was booked.',
    },
    pending: {
      title: (address) => `Open the email to ${address}`,
      text: 'Nothing is booked yet. Open the email that we are sending you, and follow its link within 30 minutes. If it does not arrive, please look in your spam folder, too.',
    },
    confirm: {
      booking: {
        title: 'Book this appointment?',
        text: 'Nothing is booked yet. The button below books it.',
        button: 'Book',
      },
      request: {
        title: 'Send this request?',
        text: 'Nothing is requested yet. The button below sends the request, which has to be confirmed before it is a booking.',
        button: 'Send request',
      },
      limit: {
        title: 'No more bookings possible',
        text: 'You have as many bookings here as one person can have. Once one of them is over or cancelled, you can book again.',
      },
    },
    invited: {
      for: (name) => `For ${name}`,
      mails: (address) => `Emails about this appointment go to ${address}.`,
      used: {
        title: 'This invitation has already been used',
        text: 'Everything that it was for is booked or requested.',
        change: 'The emails about your appointments have a link by which you can change or cancel them.',
      },
      limit: {
        title: 'No more bookings possible at present',
        text: 'An invitation can be used only so often within a day, and bookings that were cancelled or declined count, too. Please try again tomorrow.',
      },
      orAsk: (provider) => `Or contact ${provider}`,
      sent: 'Nothing else was booked.',
      over: 'If you have booked, the booking still stands.',
    },
  },
  backToBooking: 'Back to the booking',
  footer: {
    through: (crm) => `Booked through ${crm}`,
    bookingThrough: (crm) => `Booking through ${crm}`,
    legal: 'Legal notice',
    purpose: 'We use your data to arrange this appointment.',
    privacy: 'Privacy notice',
    newTab: '(opens in a new tab)',
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
    unavailableForm: {
      title: 'Temporarily unavailable',
      text: 'This page is not available at the moment. Please reload it in a few minutes: your form is then sent again. Nothing that you have typed is lost, and it is booked only once.',
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
    noBookingPage: {
      title: 'Page not found',
      text: 'There is no booking page at this address. Please check its spelling, or ask whoever gave it to you.',
    },
    deadConfirmation: {
      title: 'This link does not work',
      text: 'It works for 30 minutes after the email was sent. Nothing is booked by it any more. Please use the link in the latest email, or book again.',
    },
    foreignBooking: {
      title: 'Nothing was booked',
      text: 'This form did not come from our own page. Open the booking page again and choose a time there.',
    },
    invalidBooking: {
      title: 'Nothing was booked',
      text: 'This form could not be read. Open the booking page again and choose a time there.',
    },
    tooManyBookings: {
      title: 'Too many attempts',
      text: 'There were too many attempts from your network. Please try again later.',
    },
    invitedOnly: {
      title: 'By invitation only',
      text: 'Booking here needs a personal invitation. If you have one, please open the link in it.',
    },
    deadInvitation: {
      title: 'This invitation does not work',
      text: 'It is not valid, or no longer valid. Please use the latest link that you have received.',
    },
    internal: { title: 'Something went wrong', text: 'The error is on our side. Please try again later.' },
  },
  calendar: (url) => `Your booking: ${url}`,
};
