import { describe, expect, it } from 'vitest';
import { isGrpc, timeoutOf } from '../../../local/grpc/grpc-headers.ts';

describe('what a call says of itself in headers', () => {
  it.each([
    ['2H', 7_200_000],
    ['3M', 180_000],
    ['10S', 10_000],
    ['9998m', 9_998],
    ['1500u', 1.5],
    ['2000000n', 2],
    ['0m', 0],
    ['007S', 7_000],
    ['99999999H', 359_999_996_400_000],
  ])('grants %s', (text, ms) => {
    expect(timeoutOf(text)).toBeCloseTo(ms, 9);
  });

  it.each(['', 'm', '10', '10s', '100000000m', '-1m', '1.5S', ' 1S', '1S ', '1 S', '1e3m', '٣S', '1\u{1d7d9}S'])(
    'grants no limit with %j',
    (text) => {
      expect(timeoutOf(text)).toBeNull();
    },
  );

  it('grants no limit without the header', () => {
    expect(timeoutOf(null)).toBeNull();
  });

  it.each([
    ['application/grpc', true],
    ['application/grpc+proto', true],
    ['Application/GRPC', true],
    ['application/grpc; charset=utf-8', true],
    ['application/grpc+json', false],
    ['application/grpc-web', false],
    ['application/json', false],
    [undefined, false],
  ])('knows whether %j is gRPC', (type, isCall) => {
    expect(isGrpc(type)).toBe(isCall);
  });
});
