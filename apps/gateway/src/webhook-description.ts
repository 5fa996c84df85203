/**
 * The `webhooks` of the API document: the request that the service sends for each event (interface 6.4).
 *
 * @param eventExample an event, as in the list of events
 */
export function describeWebhooks(eventExample: unknown) {
  return {
    event: {
      post: {
        operationId: 'receiveEvent',
        summary: 'Receive an event',
        description:
          'The request that is sent to the URL of a webhook for each event: one at a time, in the order of the events. Verify the signature with the bytes of the body as they ' +
          'arrived, store the event, and answer within 10 seconds. An event can arrive more than once. The type `webhook.test` is that of the operation Test a webhook, and is not ' +
          'in the list of events. Ignore types that you do not know: there may be new ones.',
        // Not that of the operations: a generator of clients would write both into the same file.
        tags: ['Webhook requests'],
        security: [],
        parameters: Object.entries(signatureHeaders).map(([name, { description, example }]) => ({
          name,
          in: 'header',
          required: true,
          description,
          schema: { type: 'string' },
          example,
        })),
        requestBody: {
          required: true,
          description: 'The event, with references and times as they are when the request is sent.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Event' }, example: eventExample } },
        },
        responses: {
          '2XX': { description: 'Accepted: the next event follows. The body of the response is discarded.' },
          '410': { description: 'The endpoint is gone: the webhook is disabled at once.' },
          default: {
            description:
              'Any other status is a failure, redirects included. The event is sent again after 5 seconds, 5 minutes, 30 minutes, and 2, 5, 10, 14, 20 and 24 hours, or later if ' +
              '`Retry-After` asks for that. After the tenth attempt the webhook is disabled.',
            headers: {
              'Retry-After': {
                description: 'A longer pause before the next attempt: seconds, at most a day, or an HTTP date.',
                schema: { type: 'string' },
                example: '600',
              },
            },
          },
        },
      },
    },
  };
}

/** Of Standard Webhooks 1.0. */
const signatureHeaders = {
  'webhook-id': {
    description: 'ID of the event: the same in every attempt.',
    example: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
  },
  'webhook-timestamp': {
    description:
      'When this request was made, in seconds since 1970. Reject one that differs by more than 5 minutes from your clock.',
    example: '1904281200',
  },
  'webhook-signature': {
    description:
      '`v1,` and the HMAC-SHA256, in base64, of `<webhook-id>.<webhook-timestamp>.<body>`. The key is what follows `whsec_` in the secret, decoded from base64. ' +
      'For 24 hours after a replacement of the secret there are two signatures, separated by a space.',
    example: 'v1,5qDgrzXVVca5XA7s7c4a9BJXpWyQMMNs9PjU8u+nkLQ=',
  },
};
