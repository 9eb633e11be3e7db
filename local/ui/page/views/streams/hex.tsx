import { useState } from 'preact/hooks';
import { bytesText } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';

/** Bytes as they are, sixteen a line. */

const LINE_BYTES = 16;
const FIRST_LINES = 256;
const MORE_LINES = 4_096;

export function Hex({ bytes, name }: { readonly bytes: Uint8Array; readonly name: string }) {
  const [lines, setLines] = useState(FIRST_LINES);
  const shown = Math.min(bytes.length, lines * LINE_BYTES);
  return (
    <div class="code">
      <pre class="hex" tabIndex={0} aria-label={name}>
        {hexText(bytes.subarray(0, shown))}
      </pre>
      {shown < bytes.length && (
        <div class="code-more">
          <span class="muted">
            {bytesText(shown)} of {bytesText(bytes.length)}
          </span>
          <Button isSmall onClick={() => setLines(lines + MORE_LINES)}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}

function hexText(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += LINE_BYTES) {
    const some = [...bytes.subarray(at, at + LINE_BYTES)];
    const digits = some.map((byte) => byte.toString(16).padStart(2, '0'));
    const texts = some.map((byte) => (byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : '·')).join('');
    lines.push(
      `${at.toString(16).padStart(6, '0')}  ${digits.slice(0, 8).join(' ').padEnd(23)}  ${digits.slice(8).join(' ').padEnd(23)}  ${texts}`,
    );
  }
  return lines.join('\n');
}
