import type { Texts } from './texts.ts';

export const texts: Texts = {
  sandbox: 'Test: keine echte Buchung',
  situations: {
    reserved: {
      title: 'Für Sie freigehalten',
      text: 'Hier müssen Sie nichts tun. Die Buchung ist noch nicht abgeschlossen.',
    },
    requested: {
      title: 'Ihre Anfrage',
      text: 'Der Termin ist noch nicht gebucht. Sobald über Ihre Anfrage entschieden ist, bekommen Sie eine Nachricht.',
    },
    lapsed: { title: 'Nicht bestätigt', text: 'Ihre Anfrage wurde nicht rechtzeitig bestätigt.' },
    booked: { title: 'Ihre Buchung ist bestätigt', text: 'Wir freuen uns auf Sie.' },
    over: { title: 'Ihre Buchung', text: 'Dieser Termin ist vorbei.' },
    cancelled: { title: 'Storniert', text: 'Sie müssen nichts weiter tun.' },
  },
  heldUntil: (moment) => `Freigehalten bis ${moment}.`,
  labels: {
    what: 'Was',
    when: 'Wann',
    where: 'Wo',
    provider: 'Bei',
    price: 'Preis',
    name: 'Name',
    email: 'E‑Mail-Adresse',
    changes: 'Änderungen',
    message: 'Nachricht',
    from: 'Bisheriger Termin',
    to: 'Neuer Termin',
    newTitle: 'Neuer Titel',
    newPlace: 'Neuer Ort',
  },
  deadlines: {
    both: (moment) => `Verschieben oder stornieren können Sie bis ${moment}.`,
    cancel: (moment) => `Stornieren können Sie bis ${moment}.`,
    move: (moment) => `Verschieben können Sie bis ${moment}.`,
  },
  attendance: 'Sie haben zugesagt.',
  buttons: {
    move: 'Verschieben',
    cancel: 'Stornieren',
    attend: 'Ich komme',
    calendar: 'In meinen Kalender eintragen',
  },
  tooLate: 'Diese Buchung lässt sich hier nicht mehr verschieben oder stornieren.',
  ask: (provider) => `Bitte wenden Sie sich an ${provider}`,
  done: {
    cancelled: 'Die Stornierung ist abgeschlossen.',
    attending: 'Vielen Dank. Ihre Zusage ist vermerkt.',
    moved: {
      booking: 'Ihre Buchung ist verschoben. Unten steht der neue Termin.',
      request: 'Ihre Anfrage ist verschoben. Unten steht der neue Termin.',
    },
  },
  cancel: {
    booking: {
      title: 'Diese Buchung stornieren?',
      text: 'Nur diese Buchung wird storniert. Das lässt sich nicht rückgängig machen.',
      button: 'Buchung stornieren',
      back: 'Buchung behalten',
    },
    request: {
      title: 'Diese Anfrage stornieren?',
      text: 'Nur diese Anfrage wird storniert. Das lässt sich nicht rückgängig machen.',
      button: 'Anfrage stornieren',
      back: 'Anfrage behalten',
    },
    message: (provider) => `Nachricht an ${provider} (freiwillig)`,
    hint: 'Höchstens 500 Zeichen.',
  },
  attend: {
    title: 'Kommen Sie?',
    text: (provider) => `Damit teilen Sie ${provider} mit, dass Sie kommen. Sonst ändert sich nichts.`,
    button: 'Ich komme',
    back: 'Zurück zur Buchung',
  },
  move: {
    title: 'Anderen Termin wählen',
    request: 'Ihre Anfrage muss auch für den neuen Termin bestätigt werden.',
    zone: (zone) => `Alle Zeiten: ${zone}.`,
    none: { title: 'Kein freier Termin', text: 'Zurzeit ist kein Termin frei.' },
    emptyWeek: 'In dieser Woche ist kein Termin frei.',
    previous: 'Vorherige Woche',
    next: 'Nächste Woche',
    weeks: 'Wochen',
    back: 'Zurück ohne Änderung',
  },
  confirm: {
    booking: { title: 'Diese Buchung verschieben?', button: 'Buchung verschieben', back: 'Anderen Termin wählen' },
    request: { title: 'Diese Anfrage verschieben?', button: 'Anfrage verschieben', back: 'Anderen Termin wählen' },
  },
  taken: {
    title: 'Nicht mehr frei',
    text: 'Dieser Termin ist nicht mehr frei. Es wurde nichts geändert.',
    back: 'Andere Termine ansehen',
  },
  obstacles: {
    cancel: {
      cancelled: { title: 'Bereits storniert', text: 'Sie müssen nichts weiter tun.' },
      tooLate: {
        title: 'Hier nicht mehr möglich',
        text: 'Eine Stornierung ist hier nicht mehr möglich.',
      },
      notOffered: {
        title: 'Hier nicht möglich',
        text: 'Eine Stornierung ist hier nicht möglich.',
      },
    },
    move: {
      cancelled: {
        title: 'Bereits storniert',
        text: 'Was storniert ist, lässt sich nicht mehr verschieben.',
      },
      tooLate: {
        title: 'Hier nicht mehr möglich',
        text: 'Eine Verschiebung ist hier nicht mehr möglich.',
      },
      notOffered: {
        title: 'Hier nicht möglich',
        text: 'Eine Verschiebung ist hier nicht möglich.',
      },
    },
    attend: {
      cancelled: { title: 'Bereits storniert', text: 'Diese Buchung ist storniert.' },
      tooLate: { title: 'Nicht mehr nötig', text: 'Dieser Termin hat begonnen oder ist vorbei.' },
      notOffered: {
        title: 'Hier nicht möglich',
        text: 'Das ist nur bei einer bestätigten Buchung möglich.',
      },
    },
  },
  error: 'Fehler',
  invalidMessage: {
    title: 'Bitte prüfen Sie Ihre Nachricht',
    text: 'Die Nachricht darf höchstens 500 Zeichen haben.',
  },
  changed: {
    title: 'Der Termin wurde inzwischen geändert',
    text: 'Bitte prüfen Sie die neue Zeit.',
  },
  decide: {
    stages: {
      waiting: {
        title: 'Diese Anfrage bestätigen?',
        text: 'Die Kundin oder der Kunde bekommt Ihre Entscheidung per E‑Mail.',
      },
      lapsed: {
        title: 'Nicht rechtzeitig entschieden',
        text: 'Über diese Anfrage wurde nicht vor dem Beginn entschieden. Hier ist das nicht mehr möglich.',
      },
      confirmed: { title: 'Bestätigt', text: 'Diese Anfrage wurde bestätigt.' },
      declined: { title: 'Abgelehnt', text: 'Diese Anfrage wurde abgelehnt.' },
      booked: { title: 'Bestätigt', text: 'Diese Anfrage wurde bestätigt, aber nicht über einen dieser Links.' },
      cancelled: { title: 'Storniert', text: 'Diese Anfrage oder Buchung wurde storniert.' },
    },
    confirmedBy: (name, moment) => `Bestätigt${name === undefined ? '' : ` von ${name}`} am ${moment}.`,
    declinedBy: (name, moment) => `Abgelehnt${name === undefined ? '' : ` von ${name}`} am ${moment}.`,
    labels: {
      person: 'Kundin oder Kunde',
      message: 'Nachricht',
      note: 'Notiz',
      places: 'Plätze',
      others: 'Weitere Anfragen',
    },
    places: (free, all) => `${free} von ${all} frei`,
    others: (count) =>
      count === 1
        ? 'Eine weitere Anfrage für diesen Termin wartet.'
        : `${count} weitere Anfragen für diesen Termin warten.`,
    form: {
      message: 'Nachricht an die Kundin oder den Kunden (freiwillig)',
      hint: 'Höchstens 500 Zeichen.',
      confirm: 'Bestätigen',
      decline: 'Ablehnen',
    },
    errors: {
      invalidMessage: { title: 'Bitte prüfen Sie Ihre Nachricht', text: 'Sie darf höchstens 500 Zeichen haben.' },
      changed: { title: 'Der Termin wurde inzwischen geändert', text: 'Bitte prüfen Sie die neuen Angaben.' },
      full: {
        title: 'Es ist kein Platz mehr frei',
        text: 'Es wurde nichts geändert. Sie können die Anfrage hier ablehnen oder den Termin in Ihrer Software überbuchen.',
      },
      decided: { title: 'Ihre Entscheidung kam zu spät', text: 'Sie hat nichts geändert.' },
      noDecision: { title: 'Es wurde nichts entschieden', text: 'Bitte wählen Sie eine der beiden Schaltflächen.' },
    },
  },
  book: {
    offers: {
      title: 'Termin buchen',
      none: { title: 'Zurzeit keine Online-Buchung', text: 'Auf dieser Seite lässt sich im Moment nichts buchen.' },
      gone: { title: 'Dieses Angebot gibt es nicht mehr', text: 'Bitte wählen Sie ein anderes.' },
      message: 'Ihre Nachricht, zum Kopieren',
    },
    week: {
      title: (offer) => `Termin wählen: ${offer}`,
      people: 'Bei wem?',
      anyone: 'Egal',
      secondZone: (zone) => `Klein darunter: ${zone}.`,
      next: (day) => `Nächster freier Termin: ${day}`,
      allOffers: 'Alle Angebote',
    },
    taken: {
      title: 'Dieser Termin ist nicht mehr frei',
      text: 'Bitte wählen Sie einen anderen.',
      kept: 'Alles, was Sie eingegeben haben, ist noch da. Wählen Sie einen anderen Termin, um ihn zu buchen.',
      noneNear: 'In der Nähe ist kein anderer Termin frei.',
      freeAgain:
        'Er ist gerade wieder frei geworden. Bitte senden Sie das Formular noch einmal oder wählen Sie einen anderen Termin.',
      nearest: 'Nächstliegende freie Termine',
    },
    form: {
      title: 'Ihre Angaben',
      isHeld: (time) =>
        `Für Sie freigehalten bis ${time}. Sie können sich auch mehr Zeit nehmen: Danach lässt sich der Termin buchen, solange ihn niemand anders bucht.`,
      notHeld: 'Dieser Termin ist nicht für Sie freigehalten: Jemand anders könnte ihn vor Ihnen buchen.',
      needsConfirmation: 'Dies ist eine Anfrage. Erst wenn sie bestätigt ist, ist der Termin gebucht.',
      otherTime: 'Anderen Termin wählen',
      allTimes: 'Alle Termine ansehen',
      labels: { name: 'Name', email: 'E‑Mail-Adresse', mobile: 'Mobilnummer' },
      optional: (label) => `${label} (freiwillig)`,
      book: 'Buchen',
      request: 'Anfrage senden',
      bookAt: (time) => `${time} buchen`,
      requestAt: (time) => `${time} anfragen`,
      invalid: 'Bitte prüfen Sie Ihre Angaben',
      changed: {
        title: 'Der Preis hat sich inzwischen geändert',
        text: (price) =>
          price === undefined
            ? 'Es gibt keinen Preis mehr. Bitte prüfen Sie die Angaben, bevor Sie sie noch einmal senden.'
            : `Er beträgt jetzt ${price}. Bitte prüfen Sie die Angaben, bevor Sie sie noch einmal senden.`,
      },
      problems: {
        name: {
          missing: 'Geben Sie Ihren Namen ein',
          tooLong: 'Der Name darf höchstens 60 Zeichen haben',
          malformed: 'Geben Sie Ihren Namen ohne Internetadressen ein',
        },
        email: {
          missing: 'Geben Sie Ihre E‑Mail-Adresse ein',
          tooLong: 'Die E‑Mail-Adresse darf höchstens 254 Zeichen haben',
          malformed: 'Geben Sie eine E‑Mail-Adresse im richtigen Format ein, zum Beispiel name@example.com',
        },
        mobile: {
          missing: 'Geben Sie Ihre Mobilnummer ein',
          tooLong: 'Die Mobilnummer darf höchstens 255 Zeichen haben',
          malformed: 'Geben Sie eine Mobilnummer ein, zum Beispiel +49 170 1234567',
        },
        message: {
          missing: 'Geben Sie eine Nachricht ein',
          tooLong: 'Die Nachricht darf höchstens 500 Zeichen haben',
          malformed: 'Geben Sie die Nachricht ohne Sonderzeichen ein',
        },
      },
    },
    done: {
      booked: { title: 'Gebucht', text: 'Wir freuen uns auf Sie.' },
      requested: {
        title: 'Anfrage gesendet',
        text: 'Der Termin ist noch nicht gebucht. Sobald über Ihre Anfrage entschieden ist, bekommen Sie eine Nachricht.',
      },
      mail: (address) => `Wir haben eine E‑Mail an ${address} gesendet.`,
      change: 'Ansehen, verschieben oder stornieren (öffnet einen neuen Tab)',
      calendar: 'In meinen Kalender eintragen (öffnet einen neuen Tab)',
      over: {
        title: 'Diese Seite ist nicht mehr verfügbar',
        text: 'Wenn Sie gebucht haben, steht alles in der E‑Mail, die wir Ihnen gesendet haben.',
      },
      again: 'Zurück zur Buchungsseite',
      another: 'Weiteren Termin buchen',
    },
    sent: {
      title: 'Dieses Formular wurde schon gesendet',
      text: 'Alles Weitere steht in der E‑Mail an die Adresse darin. Sonst wurde nichts gebucht.',
    },
    pending: {
      title: (address) => `Öffnen Sie die E‑Mail an ${address}`,
      text: 'Noch ist nichts gebucht. Öffnen Sie die E‑Mail, die wir Ihnen senden, und folgen Sie innerhalb von 30 Minuten dem Link darin. Wenn sie nicht ankommt, sehen Sie bitte auch im Spam-Ordner nach.',
    },
    confirm: {
      booking: {
        title: 'Diesen Termin buchen?',
        text: 'Noch ist nichts gebucht. Erst die Schaltfläche unten bucht den Termin.',
        button: 'Buchen',
      },
      request: {
        title: 'Diese Anfrage senden?',
        text: 'Noch ist nichts angefragt. Erst die Schaltfläche unten sendet die Anfrage; gebucht ist der Termin, wenn sie bestätigt ist.',
        button: 'Anfrage senden',
      },
      limit: {
        title: 'Keine weitere Buchung möglich',
        text: 'Sie haben hier so viele Buchungen, wie eine Person haben kann. Sobald eine davon vorbei oder storniert ist, können Sie wieder buchen.',
      },
    },
    invited: {
      for: (name) => `Für ${name}`,
      mails: (address) => `E‑Mails zu diesem Termin gehen an ${address}.`,
      used: {
        title: 'Diese Einladung ist schon genutzt',
        text: 'Alles, wofür sie gedacht war, ist gebucht oder angefragt.',
        change:
          'In den E‑Mails zu Ihren Terminen finden Sie den Link, mit dem Sie einen Termin ändern oder stornieren können.',
      },
      limit: {
        title: 'Zurzeit keine weitere Buchung möglich',
        text: 'Eine Einladung lässt sich innerhalb eines Tages nur begrenzt oft nutzen; auch Buchungen, die storniert oder abgelehnt wurden, zählen mit. Bitte versuchen Sie es morgen noch einmal.',
      },
      orAsk: (provider) => `Oder wenden Sie sich an ${provider}`,
      sent: 'Es wurde kein weiterer Termin gebucht.',
      over: 'Wenn Sie gebucht haben, gilt die Buchung weiterhin.',
    },
  },
  backToBooking: 'Zurück zur Buchung',
  footer: {
    through: (crm) => `Gebucht über ${crm}`,
    bookingThrough: (crm) => `Buchung über ${crm}`,
    legal: 'Impressum',
    purpose: 'Wir verwenden Ihre Daten, um diesen Termin zu vereinbaren.',
    privacy: 'Datenschutz',
    newTab: '(öffnet einen neuen Tab)',
  },
  thisLanguage: 'Deutsch',
  failures: {
    deadLink: {
      title: 'Dieser Link funktioniert nicht',
      text: 'Er ist nicht oder nicht mehr gültig. Bitte verwenden Sie den Link in der neuesten E‑Mail.',
    },
    unknownAddress: {
      title: 'Seite nicht gefunden',
      text: 'Unter dieser Adresse gibt es keine Seite. Bitte prüfen Sie die Schreibweise.',
    },
    unavailable: {
      title: 'Zurzeit nicht verfügbar',
      text: 'Diese Seite ist im Moment nicht erreichbar. Bitte versuchen Sie es in einigen Minuten noch einmal.',
    },
    unavailableForm: {
      title: 'Zurzeit nicht verfügbar',
      text: 'Diese Seite ist im Moment nicht erreichbar. Bitte laden Sie sie in einigen Minuten neu: Dann wird Ihr Formular noch einmal gesendet. Was Sie eingegeben haben, geht dabei nicht verloren, und gebucht wird nur einmal.',
    },
    tooMany: {
      title: 'Zu viele Seiten',
      text: 'Es wurden zu viele Seiten geöffnet. Bitte versuchen Sie es in einer Minute noch einmal.',
    },
    foreignForm: {
      title: 'Es wurde nichts geändert',
      text: 'Dieses Formular kam nicht von unserer eigenen Seite. Öffnen Sie den Link in Ihrer E‑Mail und versuchen Sie es noch einmal.',
    },
    invalid: {
      title: 'Es wurde nichts geändert',
      text: 'Dieses Formular war nicht lesbar. Öffnen Sie den Link in Ihrer E‑Mail und versuchen Sie es noch einmal.',
    },
    noBookingPage: {
      title: 'Seite nicht gefunden',
      text: 'Unter dieser Adresse gibt es keine Buchungsseite. Bitte prüfen Sie die Schreibweise oder fragen Sie dort nach, woher Sie die Adresse haben.',
    },
    deadConfirmation: {
      title: 'Dieser Link funktioniert nicht',
      text: 'Er gilt 30 Minuten ab dem Versand der E‑Mail. Mit ihm lässt sich nichts mehr buchen. Bitte verwenden Sie den Link in der neuesten E‑Mail oder buchen Sie noch einmal.',
    },
    foreignBooking: {
      title: 'Es wurde nichts gebucht',
      text: 'Dieses Formular kam nicht von unserer eigenen Seite. Öffnen Sie die Buchungsseite noch einmal und wählen Sie dort einen Termin.',
    },
    invalidBooking: {
      title: 'Es wurde nichts gebucht',
      text: 'Dieses Formular war nicht lesbar. Öffnen Sie die Buchungsseite noch einmal und wählen Sie dort einen Termin.',
    },
    tooManyBookings: {
      title: 'Zu viele Versuche',
      text: 'Aus Ihrem Netz kamen zu viele Versuche. Bitte versuchen Sie es später noch einmal.',
    },
    invitedOnly: {
      title: 'Nur mit Einladung',
      text: 'Hier lässt sich nur mit einer persönlichen Einladung buchen. Wenn Sie eine haben, öffnen Sie bitte den Link darin.',
    },
    deadInvitation: {
      title: 'Diese Einladung funktioniert nicht',
      text: 'Sie ist nicht oder nicht mehr gültig. Bitte verwenden Sie den neuesten Link, den Sie bekommen haben.',
    },
    internal: {
      title: 'Etwas ist schiefgegangen',
      text: 'Der Fehler liegt bei uns. Bitte versuchen Sie es später noch einmal.',
    },
  },
  calendar: (url) => `Ihre Buchung: ${url}`,
};
