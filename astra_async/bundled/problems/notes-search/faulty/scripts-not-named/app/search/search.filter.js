(function () {
  'use strict';

  // A term is written without blanks, except between quotes; a last quote may stay open.
  var TERM = /(?:[^\s"]|"[^"]*(?:"|$))+/g;

  angular.module('notesApp').filter('search', search);

  function search() {
    return find;
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

  function parse(query) {
    return (query.match(TERM) || []).map(toTerm).filter(function (term) {
      return term.value !== '';
    });
  }

  function toTerm(written) {
    var excluded = written[0] === '-';
    var rest = excluded ? written.slice(1) : written;
    var isTag = /^tag:/i.test(rest);
    var value = (isTag ? rest.slice('tag:'.length) : rest).replace(/"/g, '');
    return { excluded: excluded, isTag: isTag, value: lower(value) };
  }

  function meets(note, term) {
    var tags = note.tags.map(lower);
    if (term.isTag) return tags.indexOf(term.value) >= 0;
    return [lower(note.title), lower(note.text)].concat(tags).some(function (text) {
      return text.indexOf(term.value) >= 0;
    });
  }

  function lower(text) {
    return text.toLowerCase();
  }
})();
