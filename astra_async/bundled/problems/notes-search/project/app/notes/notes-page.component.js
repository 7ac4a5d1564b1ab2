(function () {
  'use strict';

  angular.module('notesApp').component('notesPage', {
    templateUrl: 'app/notes/notes-page.html',
    controller: NotesPageController,
  });

  NotesPageController.$inject = ['notesService'];

  function NotesPageController(notesService) {
    var $ctrl = this;

    $ctrl.notes = [];
    $ctrl.query = '';

    $ctrl.$onInit = function () {
      notesService.load().then(function (notes) {
        $ctrl.notes = notes;
      });
    };
  }
})();
