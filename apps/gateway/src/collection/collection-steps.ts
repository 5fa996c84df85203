/** A request of the collection. Without more, it has the first example of the document as its body. */
export interface Step {
  /** As in the document, below the CRM: `GET /user/{reference}`, or `GET` for the CRM itself. */
  operation: string;
  /** Of a request that is in the collection more than once. Otherwise it is called what the document calls it. */
  name?: string;
  body?: object;
  /** Query parameters that are sent. Others are in the collection, turned off. */
  query?: Record<string, string>;
  /** Names of variables in the place of those that the path would have. */
  path?: Record<string, string>;
  /** Variables that are set before the request is sent, each to an expression. */
  sets?: Record<string, string>;
  /** Variables that are taken from the response, each by an expression of `body`. The request is repeated until they exist. */
  keeps?: Record<string, string>;
}

type Folder = readonly [name: string, steps: readonly (string | Step)[]];

const period = { from: '2030-05-01T00:00', to: '2030-06-01T00:00' };
const secondUser = { path: { reference: 'secondUserRef', userRef: 'secondUserRef' } };

/** What the variables in paths mean at first: the names in the examples of the document. */
export const references = {
  userRef: '4711@acme',
  secondUserRef: '4712@acme',
  accountRef: 'main@acme',
  secondAccountRef: 'second@acme',
  providerRef: 'workshop@acme',
  secondProviderRef: 'studio@acme',
  resourceRef: 'room-1@acme',
  timeslotRef: 't-1@acme',
  secondTimeslotRef: 't-2@acme',
  blockRef: 'block-1@acme',
  appointmentRef: 'a-1@acme',
  participationRef: 'b-1@acme',
  bookingRef: 'b-2@acme',
  customerRef: 'c-1@acme',
  calendarRef: 'cal-1@acme',
  webhookRef: 'w-1@acme',
  erasureId: '',
  mailId: '',
  invitationId: '',
  nextMonth: '',
};

const second = {
  account: {
    ownerReference: references.secondUserRef,
    accountReference: references.secondAccountRef,
    branch: 'handyman',
  },
  provider: {
    reference: references.secondProviderRef,
    ownerReference: references.secondUserRef,
    accountReference: references.secondAccountRef,
    name: 'Beispiel Studio',
  },
};

const provider = '/provider/{providerRef}';
const timeslot = `${provider}/timeslots/{timeslotRef}`;
const resource = `${provider}/resource/{resourceRef}`;
const customer = `${provider}/customers/{customerRef}`;
const participation = `${provider}/participations/{participationRef}`;
const booking = { path: { participationRef: 'bookingRef' } };

/** Every operation, in an order in which each of them succeeds in a sandbox that has nothing yet. */
export const folders: readonly Folder[] = [
  ['CRM', ['GET']],
  [
    'Users',
    [
      'POST /user',
      'GET /users',
      'GET /user/{reference}',
      'PUT /user/{reference}',
      'POST /user/{reference}/verification',
      'GET /user/{reference}/verification',
    ],
  ],
  ['Accounts', ['POST /account', 'GET /accounts', 'GET /account/{reference}', 'PUT /account/{reference}']],
  ['Providers', ['POST /provider', 'GET /providers', 'GET /provider/{reference}', 'PUT /provider/{reference}']],
  [
    'Staff',
    [
      {
        operation: 'POST /user',
        name: 'Create a second user',
        body: {
          reference: references.secondUserRef,
          email: 'carl.beispiel@acme.example',
          username: 'carl.beispiel',
          lastName: 'Beispiel',
          firstName: 'Carl',
        },
      },
      { operation: `POST ${provider}/staff`, body: { reference: references.secondUserRef } },
      `GET ${provider}/staff`,
      { operation: `DELETE ${provider}/staff/{userRef}`, ...secondUser },
    ],
  ],
  [
    'Timeslots',
    [
      `POST ${provider}/timeslots`,
      { operation: `GET ${resource}/timeslots`, query: period },
      `PUT ${timeslot}`,
      {
        operation: `POST ${provider}/timeslots`,
        name: 'Create a second timeslot',
        body: {
          timeslots: [
            {
              reference: references.secondTimeslotRef,
              resourceReference: references.resourceRef,
              start: '2030-05-07T09:00',
              end: '2030-05-07T12:00',
              raster: 30,
              defaultCapacity: 1,
              defaultAcceptBookings: true,
              state: 'BOOKABLE',
            },
          ],
        },
      },
      { operation: `DELETE ${timeslot}`, path: { timeslotRef: 'secondTimeslotRef' } },
    ],
  ],
  [
    'Slots and bookings',
    [
      { operation: `GET ${provider}/slots`, query: period },
      `POST ${provider}/bookings`,
      { operation: `POST ${provider}/bookings/{participationRef}`, ...booking },
      `PUT ${provider}/booking-rules`,
      `GET ${provider}/booking-rules`,
    ],
  ],
  [
    'Opening hours',
    [`PUT ${resource}/hours`, `GET ${resource}/hours`, `PUT ${provider}/hours`, `DELETE ${resource}/hours`],
  ],
  [
    'Blocks',
    [
      `POST ${resource}/blocks`,
      { operation: `GET ${resource}/blocks`, query: period },
      `DELETE ${resource}/blocks/{blockRef}`,
    ],
  ],
  [
    'Customers',
    [
      `POST ${provider}/customers`,
      `GET ${provider}/customers`,
      `GET ${customer}`,
      `PUT ${customer}`,
      {
        operation: `POST ${customer}/invitations`,
        body: { productReference: 'haircut@acme', bookings: 3, expiresAt: '{{nextMonth}}' },
        sets: { nextMonth: 'new Date(Date.now() + 30 * 86_400_000).toISOString()' },
        keeps: { invitationId: 'body.invitation.id' },
      },
      `GET ${customer}/invitations`,
      `DELETE ${customer}/invitations/{invitationId}`,
    ],
  ],
  [
    'Appointments',
    [
      `POST ${provider}/appointments`,
      `GET ${provider}/appointments`,
      `GET ${provider}/appointments/{appointmentRef}`,
      `PUT ${provider}/appointments/{appointmentRef}`,
    ],
  ],
  [
    'Participations',
    [
      `POST ${provider}/participations`,
      `GET ${provider}/participations`,
      `GET ${participation}`,
      `GET ${participation}/link`,
      {
        operation: `GET ${participation}/mails`,
        ...booking,
        keeps: { mailId: "body.find(({ template, state }) => template === 'booking-moved' && state === 'SENT')?.id" },
      },
      { operation: `POST ${participation}/mails/{mailId}/resend`, ...booking },
      `POST ${participation}`,
    ],
  ],
  [
    'Calendars',
    [
      `POST ${provider}/calendars`,
      `GET ${provider}/calendars`,
      `POST ${provider}/calendars/{calendarRef}/secret`,
      `DELETE ${provider}/calendars/{calendarRef}`,
    ],
  ],
  [
    'Webhooks',
    [
      'POST /webhooks',
      'GET /webhooks',
      'GET /webhooks/{webhookRef}',
      'PUT /webhooks/{webhookRef}',
      'POST /webhooks/{webhookRef}/secret',
      'POST /webhooks/{webhookRef}/test',
      'GET /webhooks/{webhookRef}/attempts',
      'DELETE /webhooks/{webhookRef}',
    ],
  ],
  ['Events', ['GET /events']],
  ['Sandbox', ['GET /sandbox/clock', 'PUT /sandbox/clock', 'GET /sandbox/mails']],
  [
    'Deletion',
    [
      `DELETE ${provider}/appointments`,
      `DELETE ${provider}/appointments/withoutNotification`,
      { operation: `DELETE ${customer}`, query: { ignoreFutureAppointments: 'true' } },
      {
        operation: 'POST /erasures',
        body: { email: 'ada.kundin@customers.example' },
        keeps: { erasureId: 'body.erasure.id' },
      },
      'GET /erasures/{erasureId}',
      { operation: 'POST /account', name: 'Create a second account', body: second.account },
      { operation: 'POST /provider', name: 'Create a second provider', body: second.provider },
      { operation: 'DELETE /provider/{reference}', path: { reference: 'secondProviderRef' } },
      { operation: 'DELETE /account/{reference}', path: { reference: 'secondAccountRef' } },
      { operation: 'DELETE /user/{reference}', ...secondUser },
    ],
  ],
];
