import { expect, it } from 'vitest';
import { type EventDefinition, eventOf, events } from './events.ts';

it.each(Object.entries<EventDefinition<unknown>>(events))('%s is found by its subject', (_, definition) => {
  expect(eventOf(definition.subject)).toBe(definition);
});

it('no other event is found', () => {
  expect(eventOf('scheduling.customer.v1.customer-celebrated')).toBeUndefined();
});

it('data is the same after it was stored as JSON, bytes included', () => {
  const { toJson, fromJson } = events.apiKeyRevoked;
  const data = { crmId: 'one', keyHash: Buffer.from([0, 127, 255]) };
  expect(fromJson(JSON.parse(JSON.stringify(toJson(data))))).toEqual(data);
});

it('what a field does not say is empty, and a field of a newer version is left out', () => {
  const { fromJson } = events.providerChanged;
  expect(fromJson({ crmId: 'one', colour: 'blue' })).toEqual({ crmId: 'one', providerId: '', version: 0 });
});
