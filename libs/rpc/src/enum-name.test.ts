import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { expect, it } from 'vitest';
import { enumName, enumNames } from './enum-name.ts';

it('lists the names of an enum in the order of the proto file', () => {
  expect(enumNames(ParticipationState)).toEqual(['RESERVED', 'REQUESTED', 'BOOKED', 'CANCELED', 'DELETED']);
});

it('names every value except the placeholders', () => {
  for (const name of enumNames(ParticipationState))
    expect(enumName(ParticipationState, ParticipationState[name])).toBe(name);
  expect(enumName(ParticipationState, ParticipationState.UNSPECIFIED)).toBeUndefined();
  expect(enumName(ParticipationState, ParticipationState.UNRECOGNIZED)).toBeUndefined();
});
