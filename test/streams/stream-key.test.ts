import { expect, it } from 'vitest';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { saltAt, StreamKey } from '../../core/streams/lookup/lookup.ts';
import { encodeText } from '../../core/base/text.ts';

it('the salt of a name is the same from its text and from its bytes, wherever these lie and whatever letters it has', () => {
  for (const name of [
    'a',
    'order-1',
    'bestellung-ä',
    'Ä',
    'заказ-7',
    '注文',
    '📦-1',
    '$$order-1',
    `long-${'x'.repeat(300)}`,
    `long-${'é'.repeat(300)}`,
  ]) {
    const bytes = encodeText(`before${name}behind`);
    expect([name, saltAt(bytes, 6, encodeText(name).length)]).toEqual([name, new StreamKey(name, streamHasher).salt]);
  }
});
