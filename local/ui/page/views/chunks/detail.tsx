import { Badge } from '../../parts/badge.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Bytes, Num } from '../../parts/amount.tsx';
import { bytesText, countText, numberText, percentText } from '../../lib/format.ts';
import type { Cell } from './cells.ts';
import { COLD, numbersOf } from './cells.ts';

/** What a cell is, for people who hear it. */
export function sentenceOf(cell: Cell): string {
  const { chunk, span, removable } = cell;
  return [
    span > 1 ? `Chunks ${chunk.start} to ${chunk.end}, merged` : `Chunk ${chunk.start}`,
    stateOf(cell),
    bytesText(chunk.bytes),
    removable === null ? 'not counted' : `${percentText(removable)} removable`,
  ].join(', ');
}

function stateOf({ chunk }: Cell): string {
  if (chunk.isOngoing) return 'being written';
  return `${chunk.isScavenged ? 'scavenged' : 'never scavenged'}${chunk.isCold ? `, ${COLD}` : ''}`;
}

/** All that is known of one chunk file. */
export function ChunkDetail({ cell, chunkSize }: { readonly cell: Cell; readonly chunkSize: number }) {
  const { chunk, span, counted, removable, fill } = cell;
  const kept = removable === null ? fill : fill * (1 - removable);
  return (
    <div class="chunk-detail">
      <div class="row wrap">
        <h2 class="chunk-name">
          {span > 1 ? 'Chunks' : 'Chunk'} {numbersOf(chunk)}
        </h2>
        {chunk.isOngoing && <Badge tone="warn">being written</Badge>}
        {chunk.isScavenged && <Badge tone="accent">scavenged</Badge>}
        {span > 1 && <Badge title={`One file of ${span} chunks`}>merged</Badge>}
        {chunk.isCold && <Badge tone="info">{COLD}</Badge>}
      </div>
      <div class="chunk-vessel" aria-hidden="true">
        <div class="stays" style={{ width: `${kept * 100}%` }} />
        <div class="goes" style={{ width: `${(fill - kept) * 100}%` }} />
      </div>
      <p class="small muted">
        {bytesText(chunk.bytes)} of {bytesText(chunkSize * span)}{' '}
        {chunk.isOngoing ? 'written' : `used ${chunk.isCold ? COLD : 'on the disk'}`}, {percentText(fill)}.
      </p>
      <Definitions
        items={[
          [
            'Removable',
            removable === null || counted === null ? (
              <span class="faint">not counted</span>
            ) : (
              <strong>
                {bytesText(Math.max(0, counted.bytesReclaimable))} <span class="muted">({percentText(removable)})</span>
              </strong>
            ),
          ],
          counted === null
            ? null
            : [
                'Removable records',
                <>
                  {numberText(counted.discardable)} of {numberText(counted.records)}
                </>,
              ],
          counted === null || counted.redactable === 0
            ? null
            : [
                'Records that lose only their data',
                <>
                  {numberText(counted.redactable)} <span class="muted">last events of deleted streams</span>
                </>,
              ],
          counted === null
            ? null
            : [
                'Weight',
                <>
                  <Num value={counted.weight} />
                  <span class="muted">: {counted.wouldExecute ? 'would be rewritten' : 'would be left as is'}</span>
                </>,
              ],
          ['File', <code class="break">{chunk.file}</code>],
          [chunk.isCold ? 'In object storage' : 'On disk', <Bytes value={chunk.bytes} />],
          [
            'Records',
            chunk.records === null ? (
              <Bytes value={chunk.dataBytes} />
            ) : (
              <>
                {countText(chunk.records, 'record')}, {bytesText(chunk.dataBytes)}
              </>
            ),
          ],
          [
            'Log positions',
            <span class="nowrap">
              {numberText(chunk.startPosition)}
              <br />
              to {numberText(chunk.endPosition)}
            </span>,
          ],
        ]}
      />
    </div>
  );
}
