/**
 * Prices of a function platform and its object storage, in US dollars, as the provider's public price list had them on
 * `asOf`. Change them here: the cost page is made from them, and names the date.
 */
export interface Prices {
  /** Day on which the prices were taken from the list. */
  readonly asOf: string;
  readonly region: string;
  /** A thousand PUT, LIST and multipart requests. */
  readonly putPer1000: number;
  /** A thousand GET and HEAD requests. DELETE is free. */
  readonly getPer1000: number;
  /** A GB (10^9 bytes) stored for a month. Traffic between functions and storage of one region is free. */
  readonly storedGbMonth: number;
  /** A million invocations of a function. */
  readonly invocationsPerMillion: number;
  /** A GB (2^30 bytes) of memory of a function for a second. */
  readonly gbSecond: number;
  /** Ten thousand requests to the secret store, and a secret for a month. */
  readonly secretReadsPer10000: number;
  readonly secretMonth: number;
}

export const PRICES: Prices = {
  asOf: '2026-11-01',
  region: 'us-east-1',
  putPer1000: 0.005,
  getPer1000: 0.0004,
  storedGbMonth: 0.023,
  invocationsPerMillion: 0.2,
  gbSecond: 0.0000133334,
  secretReadsPer10000: 0.05,
  secretMonth: 0.4,
};
