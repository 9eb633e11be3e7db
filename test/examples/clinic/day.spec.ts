import { expect, test } from 'vitest';
import { book, cancel, evolve } from './day.ts';

const free = new Map();
const booked = evolve(free, book(free, '09:30', '7'));

test('a time is given once', () => {
  expect(() => book(booked, '09:30', '8')).toThrow('09:30 is taken.');
  expect(book(booked, '09:45', '8')).toEqual({ type: 'AppointmentBooked', data: { time: '09:45', patient: '8' } });
});

test('a time that was cancelled is free again', () => {
  expect(() => cancel(free, '09:30')).toThrow('There is no appointment at 09:30.');
  expect(book(evolve(booked, cancel(booked, '09:30')), '09:30', '8').data).toMatchObject({ patient: '8' });
});

test('a time is one of the clock', () => {
  for (const time of ['24:00', '9:30', '09:60']) expect(() => book(free, time, '7')).toThrow('HH:MM');
});
