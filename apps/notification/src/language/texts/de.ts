import type { PartialTexts } from '../texts.ts';

export const texts: PartialTexts = {
  greeting: (name) => `Guten Tag ${name},`,
  mails: {
    'booking-confirmed': {
      subject: (about, when) => `Ihre Buchung: ${when} – ${about}`,
      status: 'Bestätigt',
      headline: 'Ihre Buchung ist bestätigt',
      lead: 'Wir freuen uns auf Sie.',
    },
    'request-received': {
      subject: (about, when) => `Ihre Anfrage: ${when} – ${about}`,
      status: 'Anfrage erhalten',
      headline: 'Ihre Anfrage ist angekommen',
      lead: 'Der Termin ist noch nicht gebucht. Sobald über Ihre Anfrage entschieden ist, bekommen Sie eine Nachricht.',
    },
    'request-confirmed': {
      subject: (about, when) => `Bestätigt: ${when} – ${about}`,
      status: 'Bestätigt',
      headline: 'Ihre Anfrage ist bestätigt',
      lead: 'Ihr Platz ist gebucht. Wir freuen uns auf Sie.',
    },
    'request-declined': {
      subject: (about, when) => `Abgelehnt: ${when} – ${about}`,
      status: 'Abgelehnt',
      headline: 'Ihre Anfrage wurde abgelehnt',
      lead: 'Leider können wir Ihnen diesen Termin nicht anbieten.',
    },
    'request-withdrawn': {
      subject: (about, when) => `Anfrage storniert: ${when} – ${about}`,
      status: 'Anfrage storniert',
      headline: 'Sie haben Ihre Anfrage storniert',
      lead: 'Sie müssen nichts weiter tun.',
    },
    'booking-moved': {
      subject: (about, when) => `Neuer Termin: ${when} – ${about}`,
      status: 'Verschoben',
      headline: 'Ihre Buchung wurde verschoben',
      lead: 'Hier sehen Sie, wann und wo der Termin jetzt stattfindet. Frühere Angaben gelten nicht mehr.',
    },
    'appointment-changed': {
      subject: (about, when) => `Geändert: ${when} – ${about}`,
      status: 'Geändert',
      headline: 'Ihr Termin hat sich geändert',
      lead: 'Hier sehen Sie, wann und wo er jetzt stattfindet. Frühere Angaben gelten nicht mehr.',
    },
    'request-changed': {
      subject: (about, when) => `Anfrage geändert: ${when} – ${about}`,
      status: 'Anfrage geändert',
      headline: 'Ihre Anfrage wurde geändert',
      lead: 'Hier sehen Sie, wofür sie jetzt gilt. Der Termin ist noch nicht gebucht. Sobald über die Anfrage entschieden ist, bekommen Sie eine Nachricht.',
    },
    'booking-cancelled': {
      subject: (about, when) => `Storniert: ${when} – ${about}`,
      status: 'Storniert',
      headline: 'Ihre Buchung ist storniert',
      lead: 'Sie müssen nichts weiter tun.',
    },
    'appointment-cancelled': {
      subject: (about, when) => `Abgesagt: ${when} – ${about}`,
      status: 'Abgesagt',
      headline: 'Dieser Termin findet nicht statt',
      lead: 'Leider musste er abgesagt werden.',
    },
    'booking-reminder': {
      subject: (about, when) => `Erinnerung: ${when} – ${about}`,
      status: 'Erinnerung',
      headline: 'Ihr Termin steht bevor',
      lead: 'Hier sind noch einmal Zeit und Ort. Wir freuen uns auf Sie.',
    },
    'request-unconfirmed': {
      subject: (about, when) => `Noch nicht bestätigt: ${when} – ${about}`,
      status: 'Noch nicht bestätigt',
      headline: 'Ihre Anfrage ist noch nicht bestätigt',
      lead: 'Sie haben noch keinen Platz. Bitte kommen Sie nur, wenn Sie eine Bestätigung erhalten.',
    },
    'provider-booked': {
      subject: (about, when) => `Neue Buchung: ${when} – ${about}`,
      status: 'Neue Buchung',
      headline: 'Sie haben eine neue Buchung',
      lead: 'Sie ist bestätigt, der Platz ist vergeben.',
    },
    'provider-requested': {
      subject: (about, when) => `Neue Anfrage: ${when} – ${about}`,
      status: 'Neue Anfrage',
      headline: 'Sie haben eine neue Anfrage',
      lead: 'Bitte bestätigen Sie die Anfrage oder lehnen Sie sie ab. Der Platz ist erst vergeben, wenn Sie bestätigen.',
    },
    'provider-moved': {
      subject: (about, when) => `Verschoben: ${when} – ${about}`,
      status: 'Verschoben',
      headline: 'Eine Buchung wurde verschoben',
      lead: 'Hier sehen Sie, wann und wo der Termin jetzt stattfindet. Der bisherige Platz ist wieder frei.',
    },
    'provider-request-moved': {
      subject: (about, when) => `Anfrage verschoben: ${when} – ${about}`,
      status: 'Anfrage verschoben',
      headline: 'Eine Anfrage wurde verschoben',
      lead: 'Hier sehen Sie, wofür sie jetzt gilt. Sie wartet weiterhin auf Ihre Entscheidung.',
    },
    'provider-cancelled': {
      subject: (about, when) => `Storniert: ${when} – ${about}`,
      status: 'Storniert',
      headline: 'Eine Buchung wurde storniert',
      lead: 'Der Platz ist wieder frei.',
    },
    'provider-request-withdrawn': {
      subject: (about, when) => `Anfrage storniert: ${when} – ${about}`,
      status: 'Anfrage storniert',
      headline: 'Eine Anfrage wurde storniert',
      lead: 'Sie müssen nichts mehr entscheiden.',
    },
    'provider-request-waiting': {
      subject: (about, when) => `Noch offen: ${when} – ${about}`,
      status: 'Noch offen',
      headline: 'Eine Anfrage wartet auf Ihre Antwort',
      lead: 'Bisher hat niemand die Anfrage bestätigt oder abgelehnt. Bis zur Bestätigung ist kein Platz vergeben.',
    },
    'provider-appointment-changed': {
      subject: (about, when) => `Termin geändert: ${when} – ${about}`,
      status: 'Termin geändert',
      headline: 'Ein Termin wurde geändert',
      lead: 'Hier sehen Sie die neuen Angaben. Wer daran teilnimmt, erfährt es ebenfalls, wenn eine E-Mail-Adresse bekannt ist.',
    },
    'provider-appointment-cancelled': {
      subject: (about, when) => `Termin abgesagt: ${when} – ${about}`,
      status: 'Termin abgesagt',
      headline: 'Ein Termin wurde abgesagt',
      lead: 'Er findet nicht statt. Wer gebucht hat, erfährt es ebenfalls, wenn eine E-Mail-Adresse bekannt ist.',
    },
    'provider-list': {
      subject: (about) => `Weitere Buchungen und Änderungen: ${about}`,
      status: 'Übersicht',
      headline: 'Weitere Buchungen und Änderungen',
      lead: 'In einer Stunde ist so viel passiert, dass der Rest gesammelt in dieser E-Mail steht, nach Terminen geordnet.',
    },
    'provider-day': {
      subject: (about, when) => `Heute, ${when} – ${about}`,
      status: 'Heute',
      headline: 'Ihre Termine heute',
      lead: 'Hier sehen Sie alle Termine des Tages und wer bisher gebucht hat.',
    },
    'removed-by-deletion': {
      subject: (about, when) => `Ihre Daten wurden gelöscht: ${about}, ${when}`,
      status: 'Gelöscht',
      headline: 'Ihre Kundendaten wurden gelöscht',
      lead: 'Sie nehmen an diesem Termin nicht mehr teil. Dies ist die letzte Nachricht dazu.',
    },
    'booking-verification': {
      subject: (about, when) => `Bitte bestätigen: ${when} – ${about}`,
      status: 'Noch nicht gebucht',
      headline: 'Bitte bestätigen Sie Ihre Buchung',
      lead: 'Noch ist nichts gebucht. Der Platz ist nicht für Sie reserviert: Bis Sie bestätigen, können andere ihn buchen.',
    },
    'booking-limit': {
      subject: (about, when) => `Nicht gebucht: ${when} – ${about}`,
      status: 'Nicht gebucht',
      headline: 'Diese Buchung ist nicht zustande gekommen',
      lead: 'Sie haben bereits bevorstehende Buchungen, und weitere sind nicht möglich.',
    },
    'email-verification': {
      subject: (about) => `Bitte bestätigen Sie Ihre E-Mail-Adresse für ${about}`,
      status: 'Noch ein Schritt',
      headline: 'Bitte bestätigen Sie Ihre E‑Mail‑Adresse',
      lead: 'Diese E‑Mail‑Adresse ist in einem Benutzerkonto eingetragen. Bitte bestätigen Sie, dass sie Ihnen gehört.',
    },
  },
  labels: {
    where: 'Wo',
    price: 'Preis',
    reference: 'Vorgangsnummer',
    message: (provider) => `Nachricht von ${provider}`,
    ownMessage: (provider) => `Ihre Nachricht an ${provider}`,
  },
  changes: {
    subjects: {
      time: (about, when) => `Neuer Termin: ${when} – ${about}`,
      place: (about, when) => `Neuer Ort: ${when} – ${about}`,
    },
    leads: {
      time: 'Die Zeit hat sich geändert.',
      place: 'Der Ort hat sich geändert.',
      timeAndPlace: 'Zeit und Ort haben sich geändert.',
      title: 'Nur der Titel hat sich geändert. Zeit und Ort bleiben gleich.',
      nothing: 'Zeit und Ort sind dieselben wie in unserer letzten Nachricht.',
    },
    stillRequested:
      'Der Termin ist noch nicht gebucht. Sobald über die Anfrage entschieden ist, bekommen Sie eine Nachricht.',
    previously: 'Bisher',
  },
  cancelled: {
    booking: (crm) =>
      `Die Stornierung ${crm === undefined ? '' : `erfolgte über ${crm} und `}betrifft nur diese Buchung.`,
    appointment: (crm) =>
      `Die Absage ${crm === undefined ? '' : `erfolgte über ${crm} und `}gilt für alle Teilnehmenden.`,
    byYourself: 'Sie haben diese Buchung storniert.',
  },
  link: {
    booking: {
      view: 'Ihre Buchung',
      cancel: 'Stornieren',
      change: 'Verschieben oder stornieren',
      until: (time) => `Möglich bis ${time}.`,
    },
    request: {
      view: 'Ihre Anfrage',
      cancel: 'Stornieren',
      change: 'Verschieben oder stornieren',
      until: (time) => `Sie können die Anfrage bis ${time} stornieren.`,
    },
    attend: 'Ich komme',
    again: 'Neuen Termin buchen',
  },
  contact: {
    later: (whom) => `Danach wenden Sie sich bitte ${whom}`,
    laterOrToMove: (whom) => `Danach oder zum Verschieben wenden Sie sich bitte ${whom}`,
    toChange: (whom) => `Zum Verschieben oder Stornieren wenden Sie sich bitte ${whom}`,
    again: (whom) => `Für einen neuen Termin oder bei Fragen wenden Sie sich bitte ${whom}`,
    againOrReply: (whom) =>
      `Für einen neuen Termin oder bei Fragen antworten Sie einfach auf diese E‑Mail oder wenden Sie sich ${whom}`,
    toBeAnswered: (whom) => `Wenn Sie vorher Bescheid wissen möchten, wenden Sie sich bitte ${whom}`,
    questions: (whom) => `Bei Fragen wenden Sie sich bitte ${whom}`,
    byLines: (name) => `an ${name}:`,
    directly: (name) => `direkt an ${name}.`,
    imprint: 'Das Impressum steht am Ende dieser E‑Mail.',
  },
  calendar: {
    invitation: 'Die angehängte Datei trägt den Termin in Ihren Kalender ein.',
    update: 'Die angehängte Datei aktualisiert Ihren Kalender.',
    cancellation: 'Die angehängte Datei entfernt den Termin aus Ihrem Kalender.',
    declining: 'Wenn Sie die Einladung in Ihrem Kalender ablehnen, bleibt die Buchung bestehen.',
  },
  provider: {
    labels: {
      name: 'Kundin oder Kunde',
      phone: 'Telefon',
      email: 'E-Mail',
      note: 'Notiz',
      message: (person) => `Nachricht von ${person}`,
      messageToPerson: 'Nachricht an die Kundin oder den Kunden',
    },
    decide: 'Bestätigen oder ablehnen',
    decideUntil: (start) => `Möglich bis zum Beginn am ${start}. Der Link ist nur für Sie bestimmt.`,
    byPerson: 'Die Kundin oder der Kunde hat dafür den Link in der E-Mail benutzt.',
    onPage: 'Die Kundin oder der Kunde hat dafür die Buchungsseite benutzt.',
    throughCrm: (crm) => `Das geschah über ${crm}.`,
    day: {
      bookings: (booked, requested) => {
        const bookings = booked === 0 ? 'keine Buchungen' : `${booked} ${booked === 1 ? 'Buchung' : 'Buchungen'}`;
        return requested === 0 ? bookings : `${bookings}, ${requested} ${requested === 1 ? 'Anfrage' : 'Anfragen'}`;
      },
      noBookings: 'Keine Buchungen',
      requested: 'Anfrage',
      nobody: 'Name entfernt',
    },
    unlisted: (count) => `${count} weitere finden Sie nur in Ihrem Kalender.`,
    reason: (provider, crm) =>
      `Sie bekommen diese E-Mails, weil ${provider} über Buchungen informiert wird. ${crm} kann sie abschalten.`,
  },
  verification: {
    labels: { crm: 'Konto bei', name: 'Name', email: 'E-Mail-Adresse' },
    purpose: (crm) => `${crm} möchte sicher sein, dass Nachrichten zu diesem Konto die richtige Person erreichen.`,
    action: 'E-Mail-Adresse bestätigen',
    expiry: 'Der Link ist 24 Stunden gültig und kann einmal verwendet werden.',
    unexpected:
      'Sie kennen dieses Konto nicht? Dann können Sie diese E‑Mail ignorieren: Ohne Ihre Bestätigung geschieht nichts.',
  },
  page: {
    requests: {
      'booking-verification': {
        subject: (about, when) => `Bitte bestätigen: ${when} – ${about}`,
        status: 'Noch nicht angefragt',
        headline: 'Bitte bestätigen Sie Ihre Anfrage',
        lead: 'Noch ist nichts gebucht oder angefragt, und es ist kein Platz für Sie reserviert. Wenn Sie bestätigen, bekommen Sie eine Nachricht, sobald über Ihre Anfrage entschieden ist.',
      },
      'booking-limit': {
        subject: (about, when) => `Nicht angefragt: ${when} – ${about}`,
        status: 'Nicht angefragt',
        headline: 'Diese Anfrage ist nicht zustande gekommen',
        lead: 'Sie haben bereits bevorstehende Buchungen, und weitere sind nicht möglich.',
      },
    },
    confirm: { booking: 'Buchung bestätigen', request: 'Anfrage bestätigen' },
    until: (time) => `Der Link funktioniert bis ${time}.`,
    unexpected: (provider) =>
      `Jemand hat diese Adresse auf der Buchungsseite von ${provider} eingegeben. Wenn Sie das nicht waren, müssen Sie nichts tun.`,
    limit: (bookings, provider) =>
      `Auf der Buchungsseite von ${provider} kann eine Person ${bookings === 1 ? 'eine bevorstehende Buchung' : `${bookings} bevorstehende Buchungen`} haben, Anfragen mitgezählt.`,
    cancelOne: (whom) =>
      `Um diesen Termin trotzdem zu buchen, stornieren Sie bitte zuerst einen anderen über den Link in der E‑Mail dazu, oder wenden Sie sich ${whom}`,
  },
  fallback: 'Falls die Schaltfläche nicht funktioniert, öffnen Sie diese Adresse im Browser:',
  automatic: 'Diese Nachricht wurde automatisch verschickt.',
  noReply: (name) => `Bitte antworten Sie nicht darauf: Antworten erreichen ${name} nicht.`,
};
