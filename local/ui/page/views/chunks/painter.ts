import { colourOf } from '../../lib/theme.ts';
import type { Cell } from './cells.ts';
import { numbersOf } from './cells.ts';
import { LABELLED_WIDTH } from './chunk-layout.ts';
import type { Layout } from './chunk-layout.ts';
import type { Bin, Mode, Pattern } from './modes.ts';
import { bytesText, percentText } from '../../lib/format.ts';

/** From this width on a cell is a vessel, filled as far as its file takes room; narrower ones are all colour. */
const VESSEL_WIDTH = 15;
/** From this width on patterns can be told apart. */
const PATTERN_WIDTH = 10;
/** Height of the line of words above a vessel. */
const LABEL_PX = 18;
/** Between the two words above a vessel, and between them and its sides, where the ring of the chosen one is. */
const WORD_GAP_PX = 8;
const WORD_INSET_PX = 3;
/**
 * From this width on sizes fit beside all but the longest numbers; in narrower cells some would have one and others
 * not.
 */
const SIZE_WIDTH = 72;
/** How visible cells are that the legend has switched off, and those that a run has not come to. */
const OFF_ALPHA = 0.1;
const AHEAD_ALPHA = 0.38;
const STRIPE_PX = 6;

export interface Scene {
  readonly cells: readonly Cell[];
  readonly layout: Layout;
  readonly mode: Mode;
  /** Bins of the mode that the legend has switched off. */
  readonly off: ReadonlySet<number>;
  /** Files behind which a run has not come yet; null while none goes through them. */
  readonly behind: number | null;
  /** What a cell looked like before its file changed, and how far it has become what it is, from 0 to 1. */
  readonly change: { readonly before: ReadonlyMap<number, Look>; readonly done: number } | null;
}

/** What changes of a cell when its file is written anew. */
export interface Look {
  readonly fill: number;
  readonly bin: number;
}

/** Paints the part of a map that is in sight. */
export class Painter {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  #colours = new Map<string, string>();
  #patterns = new Map<string, CanvasPattern>();
  #font = '';
  #dpr = 1;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d')!;
  }

  /** The colours of another scheme are in force. */
  forgetColours(): void {
    this.#colours = new Map();
    this.#patterns = new Map();
    this.#font = getComputedStyle(this.#canvas).fontFamily;
  }

  paint(scene: Scene, width: number, height: number, scrollTop: number): void {
    const { cells, layout, mode } = scene;
    this.#size(width, height);
    const context = this.#context;
    context.setTransform(this.#dpr, 0, 0, this.#dpr, 0, 0);
    context.clearRect(0, 0, width, height);
    context.translate(0, -scrollTop);
    const first = Math.max(0, Math.floor(scrollTop / layout.height) * layout.columns);
    const last = Math.min(cells.length, Math.ceil((scrollTop + height) / layout.height) * layout.columns);
    // By bin, since each change of the colour costs more than a cell.
    const byBin: number[][] = mode.bins.map(() => []);
    for (let i = first; i < last; i++) byBin[mode.binOf(cells[i]!, cells)]!.push(i);
    for (const [number, indexes] of byBin.entries()) {
      const bin = mode.bins[number]!;
      for (const index of indexes) this.#cell(scene, cells[index]!, bin, scene.off.has(number));
    }
    context.globalAlpha = 1;
  }

  #size(width: number, height: number): void {
    this.#dpr = devicePixelRatio;
    const wide = Math.round(width * this.#dpr);
    const high = Math.round(height * this.#dpr);
    if (this.#canvas.width !== wide) this.#canvas.width = wide;
    if (this.#canvas.height !== high) this.#canvas.height = high;
  }

  #cell({ cells, layout, mode, behind, change }: Scene, cell: Cell, bin: Bin, isOff: boolean): void {
    const context = this.#context;
    const { columns, gap } = layout;
    const x = (cell.index % columns) * layout.width;
    const y = Math.floor(cell.index / columns) * layout.height;
    const width = layout.width - gap;
    const height = layout.height - gap;
    context.globalAlpha = isOff
      ? OFF_ALPHA
      : behind !== null && cell.index >= behind && cell.index < cells.length - 1
        ? AHEAD_ALPHA
        : 1;
    if (layout.width < VESSEL_WIDTH) {
      context.fillStyle = this.#colour(bin.token);
      context.fillRect(x, y, width, height);
      if (bin.pattern !== undefined && layout.width >= PATTERN_WIDTH)
        this.#overlay(bin.pattern, () => context.fillRect(x, y, width, height));
      this.#flash(change, cell, x, y, width, height);
      return;
    }
    const hasLabel = layout.width >= LABELLED_WIDTH;
    const top = hasLabel ? y + LABEL_PX : y;
    const room = hasLabel ? height - LABEL_PX : height;
    const before = change?.before.get(cell.chunk.start);
    const fill = before === undefined ? cell.fill : before.fill + (cell.fill - before.fill) * change!.done;
    this.#vessel(cell, mode, bin, x, top, width, room, fill);
    this.#flash(change, cell, x, top, width, room);
    // Words stay legible on cells that a run has not come to.
    if (!isOff) context.globalAlpha = 1;
    if (hasLabel) this.#words(cell, mode, x, y, width);
  }

  /**
   * A vessel as large as chunks of its numbers may become, filled with what is there; what could go lies on top,
   * striped.
   */
  #vessel(cell: Cell, mode: Mode, bin: Bin, x: number, y: number, width: number, height: number, fill: number): void {
    const context = this.#context;
    const radius = Math.min(6, width / 8);
    context.save();
    context.beginPath();
    context.roundRect(x, y, width, height, radius);
    context.fillStyle = this.#colour('--surface-2');
    context.fill();
    context.clip();
    const high = Math.max(fill > 0 ? 2 : 0, Math.round(height * fill));
    const surface = y + height - high;
    const isEdged = high > 2 && high < height;
    const gone = mode.name === 'removable' ? Math.round(high * (cell.removable ?? 0)) : 0;
    context.fillStyle = this.#colour(gone > 0 ? '--ramp-2' : bin.token);
    context.fillRect(x, surface + gone, width, high - gone);
    if (gone > 0) {
      context.fillStyle = this.#colour(bin.token);
      context.fillRect(x, surface, width, gone);
      this.#overlay('stripes', () => context.fillRect(x, surface, width, gone));
    } else if (bin.pattern !== undefined) this.#overlay(bin.pattern, () => context.fillRect(x, surface, width, high));
    // How full it is, is seen where the colour is pale, too.
    context.fillStyle = this.#colour('--control-line');
    if (isEdged) context.fillRect(x, surface, width, 1);
    context.restore();
    context.strokeStyle = this.#colour('--line');
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(x + 0.5, y + 0.5, width - 1, height - 1, radius);
    context.stroke();
    // A merged file: the seams of the chunks that it was made of.
    if (cell.span > 1) {
      const seams = Math.min(cell.span, 6);
      context.strokeStyle = this.#colour('--surface');
      context.lineWidth = Math.min(2, width / 16);
      context.beginPath();
      for (let seam = 1; seam < seams; seam++) {
        const at = x + (width * seam) / seams;
        context.moveTo(at, y + 1);
        context.lineTo(at, y + height - 1);
      }
      context.stroke();
    }
  }

  #words(cell: Cell, mode: Mode, x: number, y: number, width: number): void {
    const context = this.#context;
    const { chunk } = cell;
    context.textBaseline = 'alphabetic';
    context.font = `560 12px ${this.#font}`;
    context.fillStyle = this.#colour('--text');
    const name = numbersOf(chunk);
    const nameWidth = context.measureText(name).width;
    context.fillText(name, x + WORD_INSET_PX, y + 12, width - WORD_INSET_PX);
    const value =
      mode.name === 'removable'
        ? cell.removable === null
          ? ''
          : percentText(Math.round(cell.removable * 100) / 100)
        : width < SIZE_WIDTH
          ? ''
          : bytesText(chunk.bytes);
    context.font = `400 12px ${this.#font}`;
    context.fillStyle = this.#colour('--text-2');
    const valueWidth = context.measureText(value).width;
    if (nameWidth + valueWidth + WORD_GAP_PX <= width)
      context.fillText(value, x + width - valueWidth - WORD_INSET_PX, y + 12);
  }

  /** A file that was just written anew lights up, and fades. */
  #flash(change: Scene['change'], cell: Cell, x: number, y: number, width: number, height: number): void {
    if (change === null || !change.before.has(cell.chunk.start)) return;
    const context = this.#context;
    const { globalAlpha } = context;
    context.globalAlpha = globalAlpha * (1 - change.done) * 0.75;
    context.fillStyle = this.#colour('--accent');
    context.fillRect(x, y, width, height);
    context.globalAlpha = globalAlpha;
  }

  #overlay(pattern: Pattern, fill: () => void): void {
    const context = this.#context;
    const { globalAlpha } = context;
    context.globalAlpha = globalAlpha * 0.4;
    context.fillStyle = this.#pattern(pattern);
    fill();
    context.globalAlpha = globalAlpha;
  }

  #colour(token: string): string {
    let colour = this.#colours.get(token);
    if (colour === undefined) this.#colours.set(token, (colour = colourOf(token)));
    return colour;
  }

  #pattern(name: Pattern): CanvasPattern {
    const found = this.#patterns.get(name);
    if (found !== undefined) return found;
    const size = STRIPE_PX * Math.ceil(this.#dpr);
    const tile = document.createElement('canvas');
    tile.width = size;
    tile.height = size;
    const context = tile.getContext('2d')!;
    context.strokeStyle = context.fillStyle = this.#colour('--surface');
    context.lineWidth = size / 5;
    context.lineCap = 'square';
    context.beginPath();
    if (name === 'dots') context.arc(size / 2, size / 2, size / 6, 0, Math.PI * 2);
    else {
      // Three parallels, so that the tile fits to its neighbours.
      for (const shift of [-size, 0, size]) {
        context.moveTo(shift, size);
        context.lineTo(shift + size, 0);
        if (name === 'cross') {
          context.moveTo(shift, 0);
          context.lineTo(shift + size, size);
        }
      }
    }
    if (name === 'dots') context.fill();
    else context.stroke();
    const made = this.#context.createPattern(tile, 'repeat')!;
    made.setTransform(new DOMMatrix().scale(STRIPE_PX / size));
    this.#patterns.set(name, made);
    return made;
  }
}
