import { describe, expect, it } from 'vitest';
import { removeLinks } from './remove-links.ts';

describe('a text without its links', () => {
  it.each([
    ['https://meet.example/room', ''],
    ['HTTP://localhost:8080/x?y=1#z', ''],
    ['Zoom: https://zoom.us/j/123?pwd=abc (code 4711)', 'Zoom: (code 4711)'],
    ['Video call – https://meet.example/room', 'Video call'],
    ['Online (https://meet.example/room)', 'Online'],
    ['Studio (online: https://meet.example/room)', 'Studio (online)'],
    ['Studio [Zoom – zoom.us/j/123 ]', 'Studio [Zoom]'],
    ['Join <https://meet.example/room>', 'Join'],
    ['zoommtg://zoom.us/join?confno=1, or meet.google.com/abc-defg-hij', ', or'],
    ['www.meet.de/room', ''],
    ['www.meet.example', ''],
    ['Room: studio.meet.app/room', 'Room'],
    ['zoom.us/j/123', ''],
    ['skype:anna?call', ''],
    ['msteams:/l/meetup-join/19', ''],
    ['1. https://one.example/a 2. https://two.example/b', '1. 2.'],
    ['Room 3\nhttps://meet.example/room\r\nFloor 2', 'Room 3\nFloor 2'],
  ])('%j becomes %j', (text, expected) => {
    expect(removeLinks(text)).toBe(expected);
  });

  it.each([
    'Studio24.de Beratung',
    'c/o Anna, St.Gallen/Zürich',
    'Lindenallee 12, 10115 Berlin',
    'Skype: anna',
    'Tel:030 1234567',
    'Dr.No – Teil 1/2',
    'Yoga:  Level 1',
    'A/B: 10:00',
  ])('stays as it is if it has none: %j', (text) => {
    expect(removeLinks(text)).toBe(text);
  });
});
