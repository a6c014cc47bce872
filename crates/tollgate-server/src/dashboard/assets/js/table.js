// Tables with search, sorting and pages.

import { announce, element, fill, setText } from './dom.js';
import { count, many } from './format.js';

const PAGE = 50;

/// A table of rows. A column has a `label`, returns a row's `text`, and may have a `hint` (tooltip), a
/// `value` to sort by, a `link`, `draw(cell, row)` for content that is not text, be a `number`, and
/// `wrap` its text. On a narrow screen, each row is a card with the labels.
export class Table {
  constructor({ caption, columns, key, sort, empty, search }) {
    Object.assign(this, { columns, key, sort, empty, search });
    this.rows = [];
    this.drawn = new Map();
    this.page = 0;
    this.wanted = '';
    this.head = element('tr', { role: 'row' }, columns.map((column) => this.heading(column)));
    this.body = element('tbody', { role: 'rowgroup' });
    this.message = element('p', { class: 'remark' });
    this.pages = element('div', { class: 'pages', role: 'group', 'aria-label': `Pages of ${caption}` });
    // Without these roles, cards are no table to screen readers.
    const isSortable = columns.some(({ value }) => value);
    const table = element('table', { role: 'table', class: isSortable ? 'cards sortable' : 'cards' },
      element('caption', { class: 'unseen' }, caption), element('thead', { role: 'rowgroup' }, this.head), this.body);
    this.node = element('div', { class: 'rows' },
      search && this.searching(search),
      element('div', { class: 'scroll', role: 'region', tabindex: 0, 'aria-label': caption }, table),
      element('div', { class: 'under' }, this.message, this.pages));
  }

  searching(label) {
    const input = element('input', {
      type: 'search', autocomplete: 'off', spellcheck: 'false', 'aria-label': label, placeholder: label,
      oninput: () => {
        this.wanted = input.value.trim().toLowerCase();
        this.page = 0;
        this.order();
        announce(`${many(this.found.length, 'row')} found`);
      },
    });
    return element('div', { class: 'searching', role: 'search' }, input);
  }

  heading(column) {
    const cell = element('th', { scope: 'col', role: 'columnheader', class: column.number ? 'number' : null, title: column.hint });
    if (!column.value) {
      cell.append(column.label);
      return cell;
    }
    const button = element('button', { type: 'button', class: 'sort', onclick: () => this.sortBy(column) }, column.label);
    cell.append(button);
    cell.setAttribute('aria-sort', 'none');
    column.cell = cell;
    return cell;
  }

  sortBy(column) {
    const down = this.sort?.column === column.label ? !this.sort.down : Boolean(column.number);
    this.sort = { column: column.label, down };
    this.page = 0;
    this.order();
    announce(`Sorted by ${column.label}, ${down ? 'descending' : 'ascending'}`);
  }

  /// Shows `rows`. They keep their order while one of them has the focus.
  set(rows) {
    this.rows = rows;
    const known = new Map(rows.map((row) => [this.key(row), row]));
    const hasFocus = this.found && this.body.contains(document.activeElement);
    if (!hasFocus) {
      for (const key of this.drawn.keys()) {
        if (!known.has(key)) this.drawn.delete(key);
      }
      return this.order();
    }
    for (const [key, drawn] of this.drawn) {
      if (known.has(key) && drawn.node.isConnected) this.write(drawn, known.get(key));
    }
  }

  order() {
    const wanted = this.wanted;
    const isFound = (row) => this.columns.some((column) =>
      column.text && column.text(row).toLowerCase().includes(wanted));
    this.found = wanted ? this.rows.filter(isFound) : [...this.rows];
    const column = this.columns.find(({ label }) => label === this.sort?.column);
    if (column) {
      const turn = this.sort.down ? -1 : 1;
      this.found.sort((one, other) => turn * before(column.value(one), column.value(other)));
    }
    for (const { cell, label } of this.columns) {
      const direction = this.sort?.down ? 'descending' : 'ascending';
      cell?.setAttribute('aria-sort', label === this.sort?.column ? direction : 'none');
    }
    this.show();
  }

  show() {
    const last = Math.max(0, Math.ceil(this.found.length / PAGE) - 1);
    this.page = Math.min(this.page, last);
    const from = this.page * PAGE;
    const shown = this.found.slice(from, from + PAGE);
    const nodes = shown.map((row) => this.row(row));
    const isSame = nodes.length === this.body.children.length
      && nodes.every((node, index) => node === this.body.children[index]);
    if (!isSame) fill(this.body, nodes);
    if (!nodes.length) {
      const message = this.rows.length ? 'No matching rows.' : this.empty;
      fill(this.body, element('tr', { role: 'row' }, element('td', { class: 'empty', role: 'cell', colspan: this.columns.length }, message)));
    }
    const isCut = this.found.length > PAGE;
    const range = `${count(from + 1)}–${count(from + shown.length)} of ${count(this.found.length)}`;
    setText(this.message, isCut ? range : this.search ? many(this.found.length, 'row') : '');
    this.turning(last);
  }

  turning(last) {
    if (last === 0) return fill(this.pages);
    if (!this.pages.firstChild) {
      const turn = (by) => () => {
        this.page += by;
        this.show();
        announce(this.message.textContent);
      };
      this.back = element('button', { type: 'button', class: 'quiet', onclick: turn(-1) }, 'Previous');
      this.forth = element('button', { type: 'button', class: 'quiet', onclick: turn(1) }, 'Next');
      fill(this.pages, this.back, this.forth);
    }
    this.back.disabled = this.page === 0;
    this.forth.disabled = this.page === last;
  }

  row(row) {
    const key = this.key(row);
    let drawn = this.drawn.get(key);
    if (!drawn) {
      const cells = this.columns.map((column, index) =>
        element(index ? 'td' : 'th', {
          class: column.number ? 'number' : column.wrap ? 'wrap' : null, scope: index ? null : 'row',
          role: index ? 'cell' : 'rowheader', 'data-label': column.label,
        }));
      drawn = { node: element('tr', { role: 'row' }, cells), cells };
      this.drawn.set(key, drawn);
    }
    this.write(drawn, row);
    return drawn.node;
  }

  write({ cells }, row) {
    this.columns.forEach((column, index) => {
      const cell = cells[index];
      if (column.draw) return column.draw(cell, row);
      const link = column.link?.(row);
      if (!link) return setText(cell, column.text(row));
      if (!cell.firstChild) cell.append(element('a', {}));
      cell.firstChild.setAttribute('href', link);
      setText(cell.firstChild, column.text(row));
    });
  }
}

function before(one, other) {
  if (typeof one === 'string') return one.localeCompare(other);
  return (one || 0) - (other || 0);
}
