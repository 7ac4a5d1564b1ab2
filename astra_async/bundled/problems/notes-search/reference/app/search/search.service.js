(function () {
  'use strict';

  // A term is written without blanks, except between quotes.
  var TERM = /(?:[^\s"]|"[^"]*(?:"|$))+/g;

  angular.module('notesApp').factory('searchService', searchService);

  function searchService() {
    return { find: find, highlight: highlight };
  }

  /** The notes that a query finds, in the order in which they are given. */
  function find(notes, query) {
    var terms = parse(query);
    return notes.filter(function (note) {
      return terms.every(function (term) {
        return meets(note, term) !== term.excluded;
      });
    });
  }

  /** A text cut into parts `{ text, match }`, where `match` says whether the query is found there. */
  function highlight(text, query) {
    var found = occurrences(text, query);
    var parts = [];
    var end = 0;
    found.forEach(function (range) {
      if (range.start > end) parts.push({ text: text.slice(end, range.start), match: false });
      parts.push({ text: text.slice(range.start, range.end), match: true });
      end = range.end;
    });
    if (end < text.length) parts.push({ text: text.slice(end), match: false });
    return parts;
  }

  function parse(query) {
    return (query.match(TERM) || [])
      .map(function (written) {
        var excluded = written[0] === '-';
        var rest = excluded ? written.slice(1) : written;
        var isTag = /^tag:/i.test(rest);
        var value = (isTag ? rest.slice('tag:'.length) : rest).replace(/"/g, '');
        return { excluded: excluded, isTag: isTag, value: value.toLowerCase() };
      })
      .filter(function (term) {
        return term.value !== '';
      });
  }

  function meets(note, term) {
    var tags = note.tags.map(lower);
    if (term.isTag) return tags.indexOf(term.value) >= 0;
    return [lower(note.title), lower(note.text)].concat(tags).some(function (text) {
      return text.indexOf(term.value) >= 0;
    });
  }

  /** Where the terms of a query occur in a text: ranges in order, none of which touch. */
  function occurrences(text, query) {
    var ranges = [];
    parse(query).forEach(function (term) {
      if (term.isTag || term.excluded) return;
      var start = lower(text).indexOf(term.value);
      while (start >= 0) {
        var end = start + term.value.length;
        ranges.push({ start: start, end: end });
        start = lower(text).indexOf(term.value, end);
      }
    });
    return merged(ranges);
  }

  function merged(ranges) {
    var result = [];
    ranges.sort(function (one, other) {
      return one.start - other.start;
    });
    ranges.forEach(function (range) {
      var last = result[result.length - 1];
      if (last && range.start <= last.end) last.end = Math.max(last.end, range.end);
      else result.push(range);
    });
    return result;
  }

  function lower(text) {
    return text.toLowerCase();
  }
})();
