import { expect, test } from 'vitest';
import { layoutOf } from '../../local/ui/page/views/chunks/chunk-layout.ts';

test('the cells of a full row end where the map does, but for parts of pixels', () => {
  for (const width of [332, 648, 1_012])
    for (const count of [2, 40, 3_000]) {
      const { columns, gap, ...layout } = layoutOf({ count, width, height: 400 });
      const end = columns * layout.width - gap;
      expect([width, count, end <= width, end > width - columns]).toEqual([width, count, true, true]);
    }
});
